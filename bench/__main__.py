"""python -m bench [PART …]: measure, print one table, and write back/benchmarks.json and the page made from it."""

import os
import sys

# One thread on both sides: on a shared machine two threads that wait for each other measure the neighbours.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import importlib
import time

from bench import report, stock

PARTS = ("pages", "moves", "sweep", "helpers", "build")


def main(parts: list[str]) -> None:
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        sys.exit(f"No part {unknown[0]}: say one or more of {', '.join(PARTS)}, or none for all.")
    stock.WORK.mkdir(parents=True, exist_ok=True)
    for part in parts or PARTS:
        start = time.monotonic()
        print(f"Measuring {part} …", file=sys.stderr, flush=True)
        report.keep(part, importlib.import_module(f"bench.{part}").rows())
        report.PAGE.write_text(report.page(report.load()), "utf-8")
        print(f"  {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    results = report.load()
    print(
        report.text_table([row for part in parts or PARTS for row in report.rows_of(results, part)])
    )
    print(f"\nratio = ours / peer. The page made from all results: {report.PAGE}")


if __name__ == "__main__":
    main(sys.argv[1:])
