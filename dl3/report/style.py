"""The style of a report, on screen and on A4. Nothing is loaded: fonts are those of the reader's system."""

from dl3.report.ink import CHART, switches, themes

PAGE = """
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-padding-top: 12px; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.55 system-ui, -apple-system, "Segoe UI",
  "Helvetica Neue", Arial, "Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif; }
main { max-width: 1000px; margin: 0 auto; padding: 48px 32px 64px; }
a { color: var(--accent); }
header { border-bottom: 2px solid var(--accent); padding-bottom: 20px; margin-bottom: 24px; position: relative; }
.mark { margin: 0 0 6px; color: var(--accent); font-weight: 600; letter-spacing: .06em; font-size: 13px; }
h1 { margin: 0 0 6px; font-size: 29px; line-height: 1.25; font-weight: 650; overflow-wrap: anywhere; }
h2 { margin: 44px 0 12px; padding-bottom: 5px; border-bottom: 1px solid var(--rule); font-size: 19px;
  font-weight: 650; }
h3 { margin: 30px 0 8px; font-size: 16px; font-weight: 650; overflow-wrap: anywhere; }
h3 small { color: var(--soft); font-weight: 500; font-size: 13px; margin-left: 8px; }
.when, .note, figcaption small { color: var(--soft); }
.when { margin: 0; }
.sentence { font-size: 18px; line-height: 1.5; margin: 0 0 14px; max-width: 52em; overflow-wrap: anywhere; }
.tiles { margin-top: 22px; }
.note { margin: 7px 0 0; font-size: 13px; overflow-wrap: anywhere; }
.remark { margin: 18px 0 0; padding: 9px 14px; border-left: 3px solid var(--alarm); background: var(--alarm-paper);
  font-size: 13.5px; overflow-wrap: anywhere; }
ul.plain { margin: 8px 0 0; padding-left: 20px; font-size: 13.5px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(200px, 1fr)); gap: 14px; padding: 0; }
.tiles li { list-style: none; background: var(--pale); border-left: 3px solid var(--accent); padding: 12px 16px; }
.tiles strong { display: block; font-size: 25px; line-height: 1.25; font-weight: 650; }
.tiles strong small { font-size: 14px; font-weight: 500; color: var(--soft); }
.tiles span { font-size: 13px; line-height: 1.4; display: block; color: var(--soft); overflow-wrap: anywhere; }
.theme { position: absolute; right: 0; top: 0; font-size: 12.5px; color: var(--soft); display: flex; gap: 10px; }
.theme label { cursor: pointer; } .theme input { margin: 0 4px 0 0; vertical-align: -1px; accent-color: var(--accent); }
nav { margin: 26px 0 0; font-size: 13.5px; display: flex; flex-wrap: wrap; gap: 4px 18px; }
figure { margin: 0 0 30px; break-inside: avoid; }
.note + .block, .plain + .block, .block + .block { margin-top: 16px; }
.table + figure, .note + figure, ul + figure, .block + figure { margin-top: 24px; }
figcaption { font-weight: 600; margin-bottom: 8px; break-inside: avoid; break-after: avoid; }
figcaption small, figure > small { display: block; font-weight: 400; font-size: 13px; color: var(--soft); }
.pictures { display: grid; grid-template-columns: 1fr; gap: 18px 26px; }
.pictures.many { grid-template-columns: 1fr 1fr; }
.picture { break-inside: avoid; min-width: 0; position: relative; }
.picture p { margin: 0 0 2px; font-size: 13px; font-weight: 600; overflow-wrap: anywhere; padding-right: 40px; }
.save { position: absolute; right: 0; top: -2px; font-size: 11.5px; opacity: .75; }
.save:hover, .save:focus-visible { opacity: 1; }
.tools { display: flex; justify-content: flex-end; gap: 14px; font-size: 12px; color: var(--soft); margin: 4px 0 0; }
.tools label { cursor: pointer; } .tools input, .key input { margin: 0 4px 0 0; vertical-align: -1px;
  accent-color: var(--accent); }
.block:has(.pick:checked) table { user-select: all; -webkit-user-select: all; background: var(--mark); }
.keys { display: flex; flex-wrap: wrap; gap: 3px 16px; font-size: 12.5px; margin: 0 48px 6px 0; }
.key { white-space: nowrap; } label.key { cursor: pointer; }
.swatch { display: inline-block; width: 24px; height: 12px; margin-right: 5px; vertical-align: -1px; }
.swatch.box { width: 13px; }
.picture > svg { display: block; width: 100%; height: auto; overflow: hidden; }
.picture .strip, .tip { display: none; }
.tip { font-weight: 600; paint-order: stroke; stroke: var(--paper); stroke-width: 6px; pointer-events: none; }
.p:hover .tip, .p:focus-within .tip { display: inline; }
.p:hover .bar, .p:hover .dot, .p:hover .hollow { stroke: var(--ink); stroke-width: 1.6; }
.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; line-height: 1.4; }
th { text-align: left; font-weight: 600; vertical-align: bottom; }
th small { display: block; font-weight: 400; color: var(--soft); }
thead th { border-bottom: 1.5px solid var(--ink); padding: 4px 9px 5px; }
td, tbody th { border-bottom: 1px solid var(--rule); padding: 5px 9px; vertical-align: top; overflow-wrap: break-word; }
td[data-col=at], td[data-col=frame], td[data-col=limit], td[data-col=lines], td[data-col=goal] { white-space: nowrap; }
td:not([data-col=reasons]) { word-break: keep-all; } table:not(.wide) td[data-col=device] { min-width: 9.5em; }
td a { text-decoration: none; } td a:hover { text-decoration: underline; } td.number a { color: inherit; }
.wide { font-size: 12px; } .wide td, .wide thead th { padding: 4px 5px; }
thead { display: table-header-group; }
.absent { color: var(--soft); margin: 0 0 8px; } pre { font-size: 12px; overflow-x: auto; white-space: pre-wrap; }
.on-paper { display: none; }
tr { break-inside: avoid; }
.number { text-align: right; font-variant-numeric: tabular-nums; } td.number { white-space: nowrap; }
td ul { margin: 0; padding: 0; list-style: none; }
td.number + td:not(.number), th.number + th:not(.number) { padding-left: 16px; }
.invalid td { color: var(--alarm-ink); background: var(--alarm-paper); }
.worse td[data-col=verdict], .missing td[data-col=verdict] { color: var(--alarm-ink); font-weight: 600; }
.better td[data-col=verdict] { color: var(--good); font-weight: 600; }
.trials { font-size: 12px; } .trials td { padding: 3px 7px; } .trials thead th { padding: 3px 7px 4px; }
.trials td:nth-child(n+3) { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.trials td:last-child { text-align: left; }
.trials tbody th { background: var(--pale); padding: 6px 7px 4px; font-weight: 600; overflow-wrap: anywhere; }
.trials tbody th small { display: inline; margin-left: 8px; }
tr:target td, tbody:target td { background: var(--mark); }
details > summary { cursor: pointer; color: var(--accent); font-size: 13.5px; margin: 8px 0; }
#facts th { width: 13em; font-weight: 600; } #facts td { overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: 13em 1fr; margin: 0; font-size: 13.5px; }
dt { font-weight: 600; } dt, dd { margin: 0; padding: 5px 9px; border-bottom: 1px solid var(--rule); }
dd { overflow-wrap: anywhere; }
footer { margin-top: 44px; padding-top: 12px; border-top: 1px solid var(--rule); color: var(--soft); font-size: 13px; }
@media screen and (max-width: 700px) { main { padding: 24px 16px; } .pictures.many, dl { grid-template-columns: 1fr; }
  .theme { position: static; margin-bottom: 10px; } }
@page { size: A4; margin: 15mm 14mm 16mm; }
@media print {
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { font-size: 10pt; } main { max-width: none; padding: 0; }
  .theme, .tools, .save, .key input, nav { display: none; }
  h1 { font-size: 20pt; } h2 { font-size: 13pt; margin-top: 26px; break-after: avoid; } .sentence { font-size: 12pt; }
  h3 { font-size: 11pt; margin-top: 18px; break-after: avoid; }
  .tiles { grid-template-columns: repeat(4, 1fr); gap: 8px; } .tiles li { padding: 8px 10px; }
  .tiles strong { font-size: 15pt; } .tiles span, .note, figcaption small, figure > small, footer { font-size: 8.5pt; }
  .tiles, dl > *, .note { break-inside: avoid; } .note { break-before: avoid; }
  figure.many { break-inside: auto; }
  table, dl, ul.plain { font-size: 8.5pt; } td, tbody th, thead th { padding: 3px 5px; }
  dl { grid-template-columns: 11em 1fr; }
  .picture p, .keys { font-size: 9pt; }
  .trials { font-size: 7.5pt; } .trials td, .trials thead th { padding: 2px 4px; } #facts th { width: 11em; }
  .wide { font-size: 7pt; } .wide td, .wide thead th { padding: 2px 3px; }
  .on-paper { display: block; } .trials.many, details { display: none; } details.same { display: block; }
  td.number + td:not(.number), th.number + th:not(.number) { padding-left: 11px; }
  .table { overflow: visible; } a { color: inherit; text-decoration: none; }
}
"""
STYLE = themes() + PAGE + CHART + switches()
