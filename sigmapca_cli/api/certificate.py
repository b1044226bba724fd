"""The certificate of a run, for a terminal and a notebook."""

from __future__ import annotations

from html import escape

from sigmapca_cli.evaluation.certificate import Certificate


class CertificateOfRun(Certificate):
    """A certificate that prints as sentences."""

    @property
    def sentences(self) -> list[str]:
        """Return which axes are identified, and why the others are not, in sentences."""
        from sigmapca_cli.evaluation.words import explain

        return explain(self)

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in self.sentences) + "</ul>"
