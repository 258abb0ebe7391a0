"""The table of families, docs/families.md, from the results of each."""
import json

import compare

HEAD = f"""# Models of other libraries

`tests/families/check_families.py` exports each of these models with small widths, from its
library's own class (*written*, *notebooks* and *papers*: `tests/families`), with both of PyTorch's
exporters (*torchscript*: `dynamo=False`; *dynamo*: `dynamo=True, optimize=False`), and trains
it on the same batches as PyTorch, without dropout. It wrote this page.

| column | is |
|---|---|
| operators | nodes of the exported file, without constants |
| loss | relative difference of the first step's loss from PyTorch's in fp32; passes within 1e-5 |
| gradient | largest difference of a parameter's gradient from PyTorch's in double, norm-wise; passes within 1e-4 |
| 20 steps | largest relative difference of a loss in 20 steps of SGD; passes within 1e-3 |
| rounding | by how much the losses of PyTorch's own 20 steps differ between fp32, double, and double from weights that are off by fp32's rounding; - where it was not computed |
| bf16 | error of the first step's gradients with `--precision autocast` against PyTorch's in fp32, all parameters together, in units of the largest error of PyTorch's own autocast to bf16 on a CPU in 4 draws; passes within {compare.BF16_LIMIT}; - where PyTorch has none, or it was not run |
| same bits | whether weights trained for 2 steps have the same bits at 50 % and at the smallest budget as with everything kept, or at the smallest only, where 50 % had no plan; - where it was not run |

Where PyTorch's own gradient or loss moves by more than a tenth of a limit when weights are
rounded, the limit is ten times what it moves by. Such a model tests the operators, but
its 20 steps show little.

Rounding may also flip the sign of a number in front of a Relu, which moves a gradient at
once by 0.1 to 12 %. PyTorch's own gradients of `fcn_resnet50`, `inception_v3` and
`rexnet_100` do so in some of 12 draws of rounding. `loadline check --gradients` finds every
rule of `mobileone_s0` and `skresnet18` within 3.1e-10 of finite differences in double, which
leaves rounding as the likely cause there. How far a gradient moves is the
largest of several draws, so a row that fails in *gradient* alone may be such a flip.

`--precision bf16` is narrower than PyTorch's autocast where values are added up from layer to
layer: there PyTorch keeps fp32, because one of the two operands is. With it 13 of these rows
were above the limit, most of them by the gradient of an embedding, at the end of that sum.

The older exporter leaves no trace of `detach()` in a file, so *capsules* and the losses of
*vector_quantized* train differently from PyTorch there. Of a file without marks a tensor
whose name says nothing is trained unless its contents show a table; a warning lists both.
Spectral norm changes its vectors in the forward pass, which no exporter writes, so
*spectral_critic* keeps the first ones. The newer exporter drops the label smoothing of
*uncertain_tasks*, and a warning says so.

Each row is the last result of its export, and not all are of one build or of one change of the
script: about half of the rows had two or three draws of rounding instead of eleven.
"""


COLUMNS = ["operators", "loss", "gradient", "20 steps", "rounding", "bf16", "same bits",
           "result"]
KEY = ["model", "library", "exporter"]
REFUSED = ["stage", "why"]
# The words of a result that each part decides.
PARTS = {"loss": {"loss", "gradient", "weights renamed", "buffers trained", "20 steps"},
         "bf16": {"bf16"}, "same bits": {"bits differ"}}


def number(value):
    return f"{value:.1e}"


def new_cells(result):
    """Of the parts that were run."""
    cells = {"operators": str(result["operators"])}
    if "steps" in result:
        cells.update({"loss": number(result["loss"]),
                      "gradient": number(result["gradient"]),
                      "20 steps": number(result["steps"]),
                      "rounding": number(result["steps by rounding"])})
    if "gradient" in result.get("bf16", {}):
        cells["bf16"] = f"{compare.bf16_ratio(result['bf16'], 'gradient'):.2f}"
    bits = result.get("same bits")
    if bits:
        cells["same bits"] = ("**no**" if not all(bits.values()) else "yes"
                              if "50%" in bits else "smallest only")
    return cells


def merged(kept, result):
    """The row of a result, with what an earlier page has of parts that were not run."""
    cells = {**dict.fromkeys(COLUMNS, "-"), **kept, **new_cells(result)}
    words = [word for word in kept.get("result", "passes").strip("*").split(", ")
             if any(word in own and part not in result for part, own in PARTS.items())]
    if "error" in result:
        words.append(result["stage"])
    elif result["verdict"] != "passes":
        words += result["verdict"].split(", ")
    cells["result"] = f"**{', '.join(words)}**" if words else "passes"
    return cells


def markdown(columns, rows):
    """Rows by their keys."""
    lines = ["| " + " | ".join([*KEY, *columns]) + " |",
             "|" + "---|" * (len(KEY) + len(columns))]
    lines += ["| " + " | ".join(
        [*key, *(cells.get(column, "-") for column in columns)]) + " |"
              for key, cells in sorted(rows.items(), key=lambda row: order(row[0]))]
    return "\n".join(lines) + "\n"


def order(key):
    model, library, exporter = key
    return library, model, exporter


def parse(text):
    """Rows of all tables of a page that have a model, by their keys."""
    rows, columns = {}, []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| model |"):
            columns = cells[len(KEY):]
        elif line.startswith("| ") and columns:
            rows.setdefault(tuple(cells[:len(KEY)]), {}).update(
                zip(columns, cells[len(KEY):]))
        elif not line.startswith("|"):
            columns = []
    return rows


def why(error):
    """Without colours and what follows the reason."""
    for mark in ("\x1b[96m", "\x1b[0m"):
        error = error.replace(mark, "")
    parts = [part.strip() for part in error.split(" | ")]
    kept = [part for part in parts if part.startswith(("unsupported", "Does not"))]
    return " ".join((kept or parts)[0].split()).replace("|", "/")[:160]


def write_table(folder, path):
    rows = parse(path.read_text()) if path.exists() else {}
    for file in sorted(folder.glob("*-*.json")):
        result = json.loads(file.read_text())
        key = result["name"], result["library"], result["exporter"]
        cells = {}
        if "operators" in result and result["stage"] != "check":
            cells = merged(rows.get(key, {}), result)
            for column in REFUSED:
                cells.pop(column, None)
        if "error" in result:
            cells.update(stage=result["stage"], why=why(result["error"]))
        rows[key] = cells
    trained = {key: cells for key, cells in rows.items() if "result" in cells}
    refused = {key: cells for key, cells in rows.items() if "stage" in cells}
    passed = sum(cells["result"] == "passes" for cells in trained.values())
    text = [HEAD, f"{passed} of {len(rows)} exports pass; "
            f"{len(rows) - len(trained)} were not made or not accepted.\n",
            markdown(COLUMNS, trained),
            "What was not made, not accepted or not finished. Those of the stage "
            "*export* are errors of the exporter or of a class.\n",
            markdown(REFUSED, refused)]
    path.write_text("\n".join(text))
    print(f"{passed} of {len(rows)} pass")
