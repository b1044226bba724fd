"""How a valid file is spoilt: cut short, flipped, overwritten with large numbers, pieces repeated or left out."""

import struct

from hypothesis import strategies as st

# Sizes that break arithmetic: 0, 1, −1, the ends of 16, 32 and 64 bits, and a count that would be gigabytes.
NUMBERS = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**33, 2**63 - 1, 2**64 - 1)
FORMATS = ("B", "<H", ">H", "<I", ">I", "<Q", ">Q")
TEXTS = (
    b"nan", b"inf", b"-1", b"1e999", b"'", b'"', b"\n", b"\0", b"(", b")", b",", b"9999999999999999999", b"|O",
    b"object", b"\xff\xfe", b"../../x", b"None", b"[" * 50, b"\x80\x04", b"R", b"cos\nsystem\n",
)  # fmt: skip


@st.composite
def spoilt(draw: st.DrawFn, files: list[bytes]) -> bytes:
    """One of the files after up to four changes, or noise behind its first bytes."""
    content = bytearray(draw(st.sampled_from(files)))
    if draw(st.integers(0, 19)) == 0:
        return bytes(content[: draw(st.integers(0, 16))]) + draw(st.binary(max_size=200))
    for _ in range(draw(st.integers(0, 4))):
        change(draw, content)
    return bytes(content)


def place(draw: st.DrawFn, content: bytearray) -> int:
    """A position; headers are worth more than pixels, so half of them lie in the first 256 bytes."""
    near = min(len(content), 256) if draw(st.booleans()) else len(content)
    return draw(st.integers(0, max(0, near - 1)))


def change(draw: st.DrawFn, content: bytearray) -> None:
    """One change in place."""
    kind, at = (
        draw(st.sampled_from(("cut", "flip", "number", "text", "repeat", "drop", "noise"))),
        place(draw, content),
    )
    if kind == "cut":
        del content[at:]
    elif kind == "flip" and content:
        content[at] ^= 1 << draw(st.integers(0, 7))
    elif kind == "number":
        form = draw(st.sampled_from(FORMATS))
        size = struct.calcsize(form)
        number = draw(st.sampled_from(NUMBERS)) % (1 << 8 * size)
        content[at : at + size] = struct.pack(form, number)
    elif kind == "text":
        text = draw(st.sampled_from(TEXTS))
        content[at : at + draw(st.integers(0, len(text)))] = text
    elif kind == "repeat":
        piece = bytes(content[at : at + draw(st.integers(1, 64))])
        content[at:at] = piece * draw(st.integers(1, 40))
    elif kind == "drop":
        del content[at : at + draw(st.integers(1, 64))]
    else:
        content[at : at + draw(st.integers(0, 8))] = draw(st.binary(max_size=16))
