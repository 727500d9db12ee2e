"""What the page takes for granted: somebody's models."""

from pathlib import Path

Path("models.py").write_text("""
class Model:
    def encode(self, text):
        return len(text)

    def nearest(self, vector):
        return str(vector)


def open_encoder():
    return Model()


open_labels = open_encoder
""")
