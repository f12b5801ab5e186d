// Rows of text in columns.

/** @param right columns that stand at the right, such as numbers */
export function table(rows: readonly string[][], right: readonly number[] = []): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    rows.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), 0),
  );
  const pad = (cell: string, column: number): string => {
    const width = widths[column] ?? 0;
    return right.includes(column) ? cell.padStart(width) : cell.padEnd(width);
  };
  return rows.map((row) => row.map(pad).join("  ").trimEnd());
}
