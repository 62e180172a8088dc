"""Describe a CSV file: encoding, delimiter, columns, and rows of another length."""

import csv
import sys
from collections import Counter


def main(path: str) -> None:
    with open(path, "rb") as file:
        data = file.read()
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            text = data.decode(encoding)
            break
        except UnicodeDecodeError:
            continue
    else:
        raise SystemExit("The encoding is neither UTF-8 nor Windows-1252.")
    dialect = csv.Sniffer().sniff(text[:64_000])
    rows = list(csv.reader(text.splitlines(), dialect))
    lengths = Counter(map(len, rows))
    print(f"encoding {encoding}, delimiter {dialect.delimiter!r}, {len(rows)} rows")
    print("columns:", ", ".join(rows[0]))
    usual = lengths.most_common(1)[0][0]
    odd = [number for number, row in enumerate(rows, 1) if len(row) != usual]
    print(f"rows without {usual} fields: {odd[:20]}")


if __name__ == "__main__":
    main(sys.argv[1])
