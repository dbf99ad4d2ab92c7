"""Alert rules for Prometheus, as YAML."""

import yaml

from dl3.metrics.words import alerts


def rules() -> str:
    """The file for `rule_files:` of prometheus.yml."""
    listed = [
        {
            "alert": alert.name,
            "expr": alert.expr,
            "for": alert.wait,
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.text},
        }
        for alert in alerts()
    ]
    text: str = yaml.safe_dump({"groups": [{"name": "dl3", "rules": listed}]}, sort_keys=False, width=140)
    return text
