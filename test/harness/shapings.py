"""Synthetic results of shaping tests."""

from dl3.model.shaping import ShapedClass, ShapedWindow, Shaping
from harness.records import FACTS, spread

AT = "2026-11-21T23:12:04+00:00"


def shaping(dut: str = "dl3d", subscribers: int = 1000, **changes: object) -> Shaping:
    """A device that keeps the rates of its subscribers."""
    fields: dict[str, object] = {
        "at": AT,
        "campaign": AT,
        "dut": dut,
        "wire": "memif",
        "frame": "1024",
        "subscribers": subscribers,
        "rates_bps": (1e6, 4e6),
        "overload": 1.5,
        "seconds": 10.0,
        "n_invalid": 1,
        "queue": "fq_codel",
        "error_mean": -0.0001,
        "error_low": -0.004,
        "error_high": 0.0021,
        "within": 1.0,
        "silent": 0,
        "jain": 0.999987,
        "burst_bytes": 4100,
        "burst_at_us": 5_000_001.0,
        "windows": (ShapedWindow(seconds=0.1, low=0.98, high=1.034), ShapedWindow(seconds=1.0, low=0.998, high=1.003)),
        "classes": (
            ShapedClass(name="strict", dscp=46, share=0.2, delay=spread(20_000, 9_000)),
            ShapedClass(name="rest", dscp=0, share=1.3, delay=spread(80_000, 41_000_000)),
        ),
        "facts": FACTS,
    }
    return Shaping.model_validate({**fields, **changes})
