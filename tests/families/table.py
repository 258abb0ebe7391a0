"""The table of families, docs/families.md, from the results of each."""
import json

HEAD = """# Models of other libraries

`tests/families/check_families.py` exports each of these models with small widths, from its
library's own class, with both of PyTorch's exporters (*torchscript*: `dynamo=False`; *dynamo*:
`dynamo=True, optimize=False`), and trains it on the same batches as PyTorch, without
dropout. It wrote this page.

| column | is |
|---|---|
| operators | nodes of the exported file, without constants |
| loss | relative difference of the first step's loss from PyTorch's in fp32; passes within 1e-5 |
| gradient | largest difference of a parameter's gradient from PyTorch's in double, norm-wise; passes within 1e-4 |
| 20 steps | largest relative difference of a loss in 20 steps of SGD; passes within 1e-3 |
| rounding | by how much the losses of PyTorch's own 20 steps differ between fp32, double, and double from weights that are off by fp32's rounding; - where it was not computed |
| same bits | whether the trained weights have the same bits at 50 % and at the smallest budget, or at the smallest only, where 50 % had no plan; - where it was not run |

Where PyTorch's own gradient or loss moves by more than a tenth of a limit when weights are
rounded, the limit is ten times what it moves by. Such a model tests the operators, but
its 20 steps show little.

Rounding may also flip the sign of a number in front of a Relu, which moves a gradient at
once by 0.1 to 12 %. PyTorch's own gradients of `fcn_resnet50`, `inception_v3` and
`rexnet_100` do so in some of 12 draws of rounding. How far a gradient moves is the
largest of several draws, so a row that fails in *gradient* alone may be such a flip.

Each row is the last result of its export, and not all are of one build: eleven draws are
made since the last change of the script, and about half of the rows had two or three.
"""


def number(value):
    return f"{value:.1e}"


def row(result):
    cells = [result["name"], result["library"], result["exporter"]]
    if "error" in result:
        return None
    bits = result.get("same bits")
    shown = ("-" if not bits else "**no**" if not all(bits.values())
             else "yes" if "50%" in bits else "smallest only")
    return [*cells, str(result["operators"]), number(result["loss"]),
            number(result["gradient"]), number(result["steps"]),
            number(result["steps by rounding"]) if "steps by rounding" in result else "-",
            shown,
            result["verdict"] if result["verdict"] == "passes"
            else f"**{result['verdict']}**"]


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(r) + " |" for r in rows)]) + "\n"


def why(error):
    """Without colours and what follows the reason."""
    for mark in ("\x1b[96m", "\x1b[0m"):
        error = error.replace(mark, "")
    parts = [part.strip() for part in error.split(" | ")]
    kept = [part for part in parts if part.startswith(("unsupported", "Does not"))]
    return " ".join((kept or parts)[0].split()).replace("|", "/")[:160]


def write_table(folder, path):
    results = [json.loads(file.read_text()) for file in sorted(folder.glob("*-*.json"))]
    rows = [row(r) for r in results if "error" not in r]
    passed = sum(r["verdict"] == "passes" for r in results)
    refused = [[r["name"], r["library"], r["exporter"], r["stage"], why(r["error"])]
               for r in results if "error" in r]
    text = [HEAD, f"{passed} of {len(results)} exports pass; "
            f"{len(refused)} were not made or not accepted.\n",
            markdown(["model", "library", "exporter", "operators", "loss", "gradient",
                      "20 steps", "rounding", "same bits", "result"], rows),
            "What was not made or not accepted. Those of the stage *export* are errors "
            "of the exporter or of a class.\n",
            markdown(["model", "library", "exporter", "stage", "why"], refused)]
    path.write_text("\n".join(text))
    print(f"{passed} of {len(results)} pass")
