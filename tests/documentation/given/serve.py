"""What the page of serving takes for granted: models, a page to read, and somebody's further functions."""

from pathlib import Path

Path("models.py").write_text("""
class Model:
    def boxes(self, image):
        return [len(image)]

    def text(self, image, boxes):
        return f"{len(boxes)} box"


def open_detector(threads):
    return Model()


open_reader = open_detector
""")
Path("page.png").write_bytes(b"\x89PNG" + bytes(200))
page = Path("page.png").read_bytes()
pages = [page, page]
