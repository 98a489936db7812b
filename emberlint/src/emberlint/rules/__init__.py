"""The rules, one file each; the engine finds them by walking this folder."""
