"""Acceptance limits of the CUDA device: compares the tests' results and the
benchmarks' document with the limit of each point.

A point without measurements has `passed` None.
Tested by tests/gpu/gpu_points_test.
"""

MOST_DEVICE_ERROR = 0.01  # relative, for the memory of the whole device
MOST_STEP_ERROR = 0.15
SHARES = ("100%", "75%", "50%", "35%")
LEAST_COVER = 0.5  # least share of the copies' time that overlaps with compute
# Relative difference between two runs of one plan.
SAME_STEP = 0.02
BESIDE_PYTORCH = ("gpt2-124m", "resnet50")


def row(point, what, limit, worst, where, passed):
    return {"point": point, "what": what, "limit": limit, "worst": worst,
            "where": where, "passed": passed}


def tests_row(point, what, suite, tests):
    """Passed if all tests with `suite` in their names have."""
    mine = [test for test in tests if suite in test["name"]]
    failed = [test["name"] for test in mine if not test["passed"]]
    return row(point, what, "all pass",
               f"{len(mine) - len(failed)} of {len(mine)}",
               ", ".join(failed[:3]), not failed if mine else None)


def worst_row(point, what, limit, found, passes, show):
    """`found`: (figure, where) pairs; the largest counts."""
    if not found:
        return row(point, what, limit, "-", "", None)
    figure, where = max(found)
    return row(point, what, limit, show(figure), where, passes(figure))


def runs(entries, shares=None):
    """(where, entry, point) of every plan that ran."""
    for entry in entries:
        for point in entry["points"]:
            name = " ".join([point["budget"], *point["flags"]])
            if "step_ns" in point and (shares is None or name in shares):
                where = f"{entry['model']}, {entry['precision']}, {name}"
                yield where, entry, point


def percent(figure):
    return f"{figure:+.2%}"


def byte_rows(entries):
    arena = [(abs(p["measured_arena_bytes"] - p["arena_bytes"]), where)
             for where, _, p in runs(entries)]
    whole = [(where, p) for where, _, p in runs(entries)
             if "measured_device_bytes" in p]
    above = [(p["measured_device_bytes"] - p["budget_bytes"]
              - p["reserved_bytes"], where) for where, p in whole]
    error = [(abs(p["measured_device_bytes"]
                  / (p["arena_bytes"] + p["reserved_bytes"]) - 1), where)
             for where, p in whole]
    return [
        worst_row(3, "arena against plan", "0 bytes", arena,
                  lambda b: b == 0, lambda b: f"{b} bytes"),
        worst_row(3, "driver's bytes above budget and reserve", "0 bytes",
                  above, lambda b: b <= 0, lambda b: f"{b} bytes"),
        worst_row(3, "driver's bytes against prediction", "1 %", error,
                  lambda e: e <= MOST_DEVICE_ERROR, percent)]


def pytorch_rows(entries):
    rows = []
    for model in BESIDE_PYTORCH:
        times = next((e["pytorch"] for e in entries if e["model"] == model
                      and e["precision"] == "bf16" and "pytorch" in e), {})
        what = f"{model}, bf16: step against PyTorch eager"
        found = []
        if "loadline" in times and "eager" in times:
            found = [(times["loadline"] / times["eager"],
                      f"torch.compile {times['compiled'] / 1e6:.2f} ms"
                      if "compiled" in times else "torch.compile failed")]
        rows.append(worst_row(5, what, "below 1", found, lambda r: r < 1,
                              lambda r: f"{r:.3f}"))
    return rows


def half_rows(entries):
    """At 50 %: with copies against recomputation only, and the cost of copies."""
    slower, cover = [], []
    for where, entry, point in runs(entries, {"50%"}):
        alone = next((p["step_ns"] for _, _, p in
                      runs([entry], {"50% --no-offload"})), None)
        if alone:
            slower.append((point["step_ns"] / alone - 1, where))
        if point.get("copies_under_compute") is not None:
            cover.append((1 - point["copies_under_compute"], where))
    return [
        worst_row(6, "50 %: step against recomputing alone", "not slower",
                  slower, lambda s: s <= SAME_STEP, percent),
        worst_row(6, "50 %: copies' time not under computing",
                  f"{1 - LEAST_COVER:.0%}", cover,
                  lambda c: c <= 1 - LEAST_COVER, percent)]


def rows_of(tests, benchmarks):
    """Rows for the six points; `tests` as gpu_check lists them, `benchmarks` as
    gpu_budgets writes them, or None."""
    entries = (benchmarks or {}).get("models", [])
    error = [(abs(p["predicted_step_ns"] / p["step_ns"] - 1), where)
             for where, _, p in runs(entries, SHARES)]
    return [
        tests_row(1, "operators against the CPU's", "GpuOperators.", tests),
        tests_row(2, "the CPU's losses", "HasTheCpusFirst20Losses", tests),
        tests_row(2, "same weights whatever the plan",
                  "HasTheSameWeightsWhateverThePlan", tests),
        *byte_rows(entries),
        worst_row(4, "predicted step against measured", "15 %", error,
                  lambda e: e <= MOST_STEP_ERROR, percent),
        *pytorch_rows(entries),
        *half_rows(entries)]


def markdown(rows):
    said = {True: "passed", False: "FAILED", None: "not measured"}
    lines = ["| point | what | limit | worst | result | where |",
             "|---|---|---|---|---|---|"]
    lines += [f"| {r['point']} | {r['what']} | {r['limit']} | {r['worst']} "
              f"| {said[r['passed']]} | {r['where']} |" for r in rows]
    return "\n".join(lines)
