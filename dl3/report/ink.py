"""Colours in both themes, and the style of a chart on the page and in its own file."""

# name, light theme, dark theme
PALETTE = (
    ("paper", "#ffffff", "#14181e"),
    ("ink", "#1c2530", "#e3e8ee"),
    ("soft", "#586474", "#9aa7b5"),
    ("rule", "#d9dee5", "#323b46"),
    ("pale", "#f4f6f9", "#1d232b"),
    ("accent", "#0b5394", "#6cb0f2"),
    ("alarm", "#a32020", "#f08a80"),
    ("alarm-ink", "#8c1d18", "#f3a79f"),
    ("alarm-paper", "#fdf3f2", "#2c1d1d"),
    ("good", "#00664e", "#5cc9a7"),
    ("mark", "#fff6d6", "#3a3420"),
    ("c0", "#0b5394", "#6cb0f2"),
    ("c1", "#c2570c", "#f29a52"),
    ("c2", "#007a5e", "#4cc2a0"),
    ("c3", "#7b4aa3", "#b996dd"),
    ("c4", "#4a5563", "#a7b3c0"),
    ("c5", "#a3195b", "#ee7fae"),
)
N_KEYS = 24  # series of one figure that can be switched off


def themes() -> str:
    """The colours: as in the reader's system or as selected at the top; print is always light."""
    light = "; ".join(f"--{name}: {white}" for name, white, _ in PALETTE)
    both = "; ".join(f"--{name}: light-dark({white}, {dark})" for name, white, dark in PALETTE)
    return f"""
:root {{ color-scheme: light; {light}; }}
@supports (color: light-dark(red, red)) {{ @media screen {{ :root {{ color-scheme: light dark; {both}; }}
  :root:has(#theme-light:checked) {{ color-scheme: light; }}
  :root:has(#theme-dark:checked) {{ color-scheme: dark; }} }} }}
"""


def switches() -> str:
    """Rules that hide a series of a figure while its box is not ticked."""
    return "".join(
        f"figure:has(.k{n}:not(:checked)) .s{n} {{ display: none; }}\n"
        f"figure:has(.k{n}:not(:checked)) .e{n} {{ opacity: .45; text-decoration: line-through; }}\n"
        for n in range(N_KEYS)
    )


CHART = """
svg { font-size: 11.5px; }
svg text { fill: var(--ink); font-variant-numeric: tabular-nums; }
svg .tick, svg .axis { fill: var(--soft); }
svg .value { text-anchor: middle; font-weight: 600; paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
.grid { stroke: var(--rule); stroke-width: 1; }
.floor { stroke: var(--ink); stroke-width: 1; }
.whisker { stroke: var(--ink); stroke-width: 1; }
.second { stroke: var(--ink); stroke-width: 1.6; stroke-dasharray: 2 2; }
.limit { stroke: var(--alarm); stroke-width: 2; stroke-dasharray: 5 3; }
.line { fill: none; stroke-width: 1.9; stroke-linejoin: round; }
.dot { stroke: var(--paper); stroke-width: .8; }
.c0 { --c: var(--c0); } .c1 { --c: var(--c1); } .c2 { --c: var(--c2); }
.c3 { --c: var(--c3); } .c4 { --c: var(--c4); } .c5 { --c: var(--c5); }
.bar, .dot { fill: var(--c); } .line { stroke: var(--c); }
.hollow { fill: var(--paper); stroke: var(--c); stroke-width: 1.4; }
.node { fill: var(--pale); stroke: var(--ink); stroke-width: 1; } .port { fill: var(--paper); stroke: var(--c0); stroke-width: 1.2; }
.cable { stroke: var(--ink); stroke-width: 1.5; } .arrowhead { fill: var(--ink); }
svg .lost { fill: var(--alarm-ink); font-weight: 600; }
.loss { fill: var(--alarm); } .gap { fill: var(--c1); } .event { fill: var(--c3); }
"""
# The same in a file: light regardless of the page's theme, with each colour written out.
IN_FILE = "svg { background: #fff; font-family: system-ui, Arial, 'Noto Sans', 'Noto Sans CJK SC', sans-serif; }"


def file_style() -> str:
    """The style of a saved chart; SVG programs do not support CSS variables, so all of them are resolved."""
    style = CHART.replace("var(--c)", "var(--c-)")
    own = [f".c{n} {{ --c: var(--c{n}); }}" for n in range(6)]
    for rule in own:
        style = style.replace(rule, "")
    series = "".join(
        f".bar.c{n}, .dot.c{n} {{ fill: var(--c{n}); }} .line.c{n}, .hollow.c{n} {{ stroke: var(--c{n}); }}\n"
        for n in range(6)
    )
    style = style.replace(".bar, .dot { fill: var(--c-); } .line { stroke: var(--c-); }", series)
    style = style.replace(" stroke: var(--c-);", "")
    for name, white, _ in PALETTE:
        style = style.replace(f"var(--{name})", white)
    return "\n".join(line for line in (IN_FILE + style).splitlines() if line.strip())
