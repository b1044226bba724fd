"""Names in scripts that the fonts here do not have."""

import warnings

from sigmapca_cli.figures.save import font_with, letters_lacking, new_figure, save


def test_letters_without_a_font_are_named_once_and_known_scripts_are_drawn(tmp_path, caplog):
    figure = new_figure()
    axes = figure.subplots()
    axes.set_yticks([0, 1], ["λ, é, Ж", "\U000f0123 height"])  # no font has a letter of the private area
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save(figure, tmp_path / "a", ("png", "pdf"))
    said = [record.message for record in caplog.records]
    assert len(said) == 1 and "\U000f0123" in said[0] and "λ" not in said[0]
    assert [letters_lacking(text) for text in axes.get_yticklabels()] == [set(), {"\U000f0123"}]
    assert font_with(frozenset("λ")) is not None
