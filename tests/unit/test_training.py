"""Chapter 9's model, as the chapter writes it, learns to reverse from every seed."""

import ast
from pathlib import Path

import jupytext
import pytest
import torch

CHAPTER = Path(__file__).parents[2] / "chapters" / "09-transformer.md"
DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
SEEDS = range(5)


@pytest.fixture(scope="module")
def chapter() -> dict:
    """What the chapter's cells import and define, and its data; nothing is trained or drawn yet."""
    names = {}
    for cell in jupytext.read(CHAPTER).cells:
        if cell.cell_type != "code":
            continue
        tree = ast.parse(cell.source)
        if not cell.source.startswith("LETTERS, LENGTH ="):
            tree.body = [
                node for node in tree.body if isinstance(node, DEFINITIONS) and plain(node)
            ]
        exec(compile(tree, CHAPTER.name, "exec"), names)
    return names


def plain(node: ast.AST) -> bool:
    """No explorer, which would run its sweep."""
    return not any("explore" in ast.unparse(d) for d in getattr(node, "decorator_list", []))


@pytest.fixture(scope="module", params=SEEDS)
def copies(request, chapter):
    return chapter["train"](seed=request.param)


def test_learns_to_reverse(copies, chapter):
    """99 % of held-out letters at the least, and chance before."""
    before, after = (chapter["right"](model).mean().item() for model in (copies[0], copies[-1]))
    assert before < 0.25
    assert after >= 0.99


def test_the_heads_tell_what_the_chapter_says(copies, chapter):
    """Layer 2 looks at the mirror place; without it nothing is left, without one head something is."""
    model = copies[-1]
    assert chapter["mirror"](copies[0]).max() < 0.3
    assert chapter["mirror"](model)[1].min() > 0.7
    right, without = chapter["right"], chapter["without"]
    both = right(without(model, (1, 0), (1, 1))).mean()
    assert both < 0.2  # chance is 0.1
    for head in range(2):
        assert right(without(model, (1, head))).mean() > both + 0.1


def test_fails_without_positions_and_without_attention(chapter):
    right, train = chapter["right"], chapter["train"]
    assert right(train(positions=False)[-1]).mean() < 0.5
    alone = torch.eye(8, dtype=torch.bool)
    assert right(train(mask=alone)[-1], alone).mean() < 0.2


def test_held_out_sequences_are_never_trained_on(chapter):
    trained = {tuple(row) for row in chapter["draw"](20_000).tolist()}
    assert not trained & {tuple(row) for row in chapter["test"].tolist()}
