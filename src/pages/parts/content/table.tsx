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

type Column = string | { readonly label: string; readonly kind: 'numeric' | 'actions' };

/** A table that scrolls by itself where it is wider than the page. */
export function Table({ caption, columns, rows, totals, hasCards = false }: TableProps): VNode {
  const heads = columns.map((column) => (typeof column === 'string' ? { label: column, kind: undefined } : column));
  const cellOf = (cell: ComponentChildren, index: number): VNode => {
    const { label, kind } = heads[index] ?? { label: '', kind: undefined };
    return index === 0 ? (
      <th key={label} scope="row">
        {cell}
      </th>
    ) : (
      <td key={label} class={kind} data-label={hasCards && kind !== 'actions' ? label : undefined}>
        {cell}
      </td>
    );
  };
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label={caption}>
      <table class={hasCards ? 'table table-cards' : 'table'}>
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {heads.map(({ label, kind }) => (
              <th key={label} scope="col" class={kind}>
                {label}
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
export function numeric(...labels: readonly string[]): readonly Column[] {
  return labels.map((label) => ({ label, kind: 'numeric' }));
}
