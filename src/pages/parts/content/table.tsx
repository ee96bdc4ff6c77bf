import type { ComponentChildren, VNode } from 'preact';

interface TableProps {
  /** The content of the table, in a few words. */
  readonly caption: string;
  /** Columns with numbers or actions are aligned to the right. */
  readonly columns: readonly Column[];
  /** The first cell of a row is its header. */
  readonly rows: readonly (readonly ComponentChildren[])[];
  /** Whether each row becomes a card on a narrow screen, where the cells stand below each other with their labels. */
  readonly hasCards?: boolean;
  /** A last row that sums up the others. */
  readonly totals?: readonly ComponentChildren[];
}

type Column =
  | string
  | { readonly label: string; readonly numeric: true }
  | { readonly label: string; readonly actions: true };

/** A table that scrolls where it is wider than the page. */
export function Table({ caption, columns, rows, totals, hasCards = false }: TableProps): VNode {
  const classOf = (index: number): string | undefined => {
    const column = columns[index];
    if (typeof column !== 'object') return undefined;
    return 'numeric' in column ? 'numeric' : 'actions';
  };
  const labelOf = (index: number): string | undefined => {
    const column = columns[index];
    if (!hasCards || column === undefined) return undefined;
    if (typeof column === 'string') return column;
    return 'numeric' in column ? column.label : undefined;
  };
  const cellOf = (cell: ComponentChildren, index: number): VNode =>
    index === 0 ? (
      <th key={index} scope="row">
        {cell}
      </th>
    ) : (
      <td key={index} class={classOf(index)} data-label={labelOf(index)}>
        {cell}
      </td>
    );
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label={caption}>
      <table class={hasCards ? 'table table-cards' : 'table'}>
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column, index) => (
              <th key={index} scope="col" class={classOf(index)}>
                {typeof column === 'object' ? column.label : column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row}>{cells.map(cellOf)}</tr>
          ))}
        </tbody>
        {totals && (
          <tfoot>
            <tr>{totals.map(cellOf)}</tr>
          </tfoot>
        )}
      </table>
    </div>
  );
}

/** @returns columns that hold numbers */
export function numeric(...labels: readonly string[]): readonly { readonly label: string; readonly numeric: true }[] {
  return labels.map((label) => ({ label, numeric: true }));
}
