"""How a report looks, on a screen and on A4. Nothing is loaded: fonts are those that the reader's system has."""

STYLE = """
:root { color-scheme: light; --ink: #1c2530; --soft: #586474; --rule: #d9dee5; --pale: #f4f6f9; --accent: #0b5394;
  --c0: #0b5394; --c1: #c2570c; --c2: #007a5e; --c3: #7b4aa3; --c4: #4a5563; --c5: #a3195b; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: #fff; color: var(--ink); font: 15px/1.55 system-ui, -apple-system, "Segoe UI",
  "Helvetica Neue", Arial, "Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif; }
main { max-width: 1000px; margin: 0 auto; padding: 48px 32px 64px; }
header { border-bottom: 2px solid var(--accent); padding-bottom: 20px; margin-bottom: 24px; }
.mark { margin: 0 0 6px; color: var(--accent); font-weight: 600; letter-spacing: .06em; font-size: 13px; }
h1 { margin: 0 0 6px; font-size: 29px; line-height: 1.25; font-weight: 650; overflow-wrap: anywhere; }
h2 { margin: 44px 0 12px; padding-bottom: 5px; border-bottom: 1px solid var(--rule); font-size: 19px;
  font-weight: 650; }
.when, .note, figcaption small { color: var(--soft); }
.when { margin: 0; }
.sentence { font-size: 18px; line-height: 1.5; margin: 0 0 22px; max-width: 52em; overflow-wrap: anywhere; }
.note { margin: 7px 0 0; font-size: 13px; }
.remark { margin: 18px 0 0; padding: 9px 14px; border-left: 3px solid #a32020; background: #fdf3f2; font-size: 13.5px;
  overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(200px, 1fr)); gap: 14px; padding: 0;
  margin: 0; }
.tiles li { list-style: none; background: var(--pale); border-left: 3px solid var(--accent); padding: 12px 16px; }
.tiles strong { display: block; font-size: 25px; line-height: 1.25; font-weight: 650; white-space: nowrap; }
.tiles strong small { font-size: 14px; font-weight: 500; color: var(--soft); }
.tiles span { font-size: 13px; line-height: 1.4; display: block; color: var(--soft); overflow-wrap: anywhere; }
figure { margin: 0 0 30px; break-inside: avoid; }
figcaption { font-weight: 600; margin-bottom: 8px; break-inside: avoid; break-after: avoid; }
figcaption small, figure > small { display: block; font-weight: 400; font-size: 13px; color: var(--soft); }
.pictures { display: grid; grid-template-columns: 1fr; gap: 18px 26px; }
.pictures.many { grid-template-columns: 1fr 1fr; }
.picture { break-inside: avoid; min-width: 0; }
.picture p { margin: 0 0 2px; font-size: 13px; font-weight: 600; overflow-wrap: anywhere; }
svg { display: block; width: 100%; height: auto; font-size: 11.5px; overflow: hidden; }
svg text { fill: var(--ink); font-variant-numeric: tabular-nums; }
svg .tick, svg .axis { fill: var(--soft); }
svg .value { text-anchor: middle; font-weight: 600; paint-order: stroke; stroke: #fff;
  stroke-width: 3px; }
.grid { stroke: var(--rule); stroke-width: 1; }
.floor { stroke: var(--ink); stroke-width: 1; }
.whisker { stroke: var(--ink); stroke-width: 1; }
.limit { stroke: #a32020; stroke-width: 2; stroke-dasharray: 5 3; }
.line { fill: none; stroke-width: 1.9; stroke-linejoin: round; }
.dot { stroke: #fff; stroke-width: .8; }
.c0 { --c: var(--c0); } .c1 { --c: var(--c1); } .c2 { --c: var(--c2); }
.c3 { --c: var(--c3); } .c4 { --c: var(--c4); } .c5 { --c: var(--c5); }
.bar, .dot { fill: var(--c); } .line { stroke: var(--c); }
.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; line-height: 1.4; }
th { text-align: left; font-weight: 600; vertical-align: bottom; }
th small { display: block; font-weight: 400; color: var(--soft); }
thead th { white-space: nowrap; border-bottom: 1.5px solid var(--ink); padding: 4px 9px 5px; }
td, tbody th { border-bottom: 1px solid var(--rule); padding: 5px 9px; vertical-align: top; overflow-wrap: break-word; }
td[data-col=at], td[data-col=frame], td[data-col=limit] { white-space: nowrap; }
td:not([data-col=reasons]) { word-break: keep-all; }
thead { display: table-header-group; }
tr { break-inside: avoid; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td ul { margin: 0; padding: 0; list-style: none; }
td.number + td:not(.number), th.number + th:not(.number) { padding-left: 16px; }
.invalid td { color: #8c1d18; background: #fdf3f2; }
#trials { font-size: 12px; } #trials td { padding: 3px 7px; } #trials th { padding: 3px 7px 4px; }
#facts th { width: 13em; font-weight: 600; } #facts td { overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: 13em 1fr; margin: 0; font-size: 13.5px; }
dt { font-weight: 600; } dt, dd { margin: 0; padding: 5px 9px; border-bottom: 1px solid var(--rule); }
footer { margin-top: 44px; padding-top: 12px; border-top: 1px solid var(--rule); color: var(--soft); font-size: 13px; }
@media screen and (max-width: 700px) { main { padding: 24px 16px; } .pictures.many, dl { grid-template-columns: 1fr; } }
@page { size: A4; margin: 15mm 14mm 16mm; }
@media print {
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { font-size: 10pt; } main { max-width: none; padding: 0; }
  h1 { font-size: 20pt; } h2 { font-size: 13pt; margin-top: 26px; break-after: avoid; } .sentence { font-size: 12pt; }
  .tiles { grid-template-columns: repeat(4, 1fr); gap: 8px; } .tiles li { padding: 8px 10px; }
  .tiles strong { font-size: 15pt; } .tiles span, .note, figcaption small, figure > small, footer { font-size: 8.5pt; }
  .tiles, dl > *, .note { break-inside: avoid; } .note { break-before: avoid; }
  figure.many { break-inside: auto; }
  table, dl { font-size: 8.5pt; } td, tbody th, thead th { padding: 3px 5px; } dl { grid-template-columns: 11em 1fr; }
  .picture p { font-size: 9pt; }
  #trials { font-size: 7.5pt; } #trials td, #trials th { padding: 2px 4px; } #facts th { width: 11em; }
  td.number + td:not(.number), th.number + th:not(.number) { padding-left: 11px; }
  .table { overflow: visible; }
}
"""
