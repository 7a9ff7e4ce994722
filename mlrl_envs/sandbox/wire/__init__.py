"""Protocol between the processes of the sandbox: frames, values and text."""
