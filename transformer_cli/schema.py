"""``python -m transformer_cli.schema`` writes the JSON Schema of a recipe, for editors that check YAML as one types."""

import json
from pathlib import Path

from transformer_cli.config import Config
from transformer_cli.shipped import shipped


def schema_path() -> Path:
    """Return where the committed schema lies."""
    return shipped("configs") / "schema.json"


def schema_text() -> str:
    """Return the schema as it is committed."""
    return json.dumps(Config.model_json_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    schema_path().write_text(schema_text(), encoding="utf-8")
