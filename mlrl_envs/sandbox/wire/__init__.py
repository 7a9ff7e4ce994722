"""The protocol between processes of the sandbox: frames, values and text."""
