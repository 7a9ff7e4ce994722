"""Results with other content than was played."""

import json


def change(path, edit):
    """Edit a result in place; its transcripts stay as they are."""
    result = json.loads(path.read_text())
    edit(result)
    path.write_text(json.dumps(result))
