import type { ComponentChildren, VNode } from 'preact';
import { highlight, type Language } from './highlight.js';

interface CodeBlockProps {
  /** What the block holds, for the line above it and for screen readers: `curl`, `Response`. */
  readonly label: string;
  readonly code: string;
  /** Highlights the code. */
  readonly language?: Language | undefined;
  /** A key, which is shown once: it wraps, so that all of it is seen. */
  readonly isSecret?: boolean;
}

/** A block of code. The script gives it a button that copies it. */
export function CodeBlock({ label, code, language, isSecret = false }: CodeBlockProps): VNode {
  return (
    <figure class={isSecret ? 'code-block secret' : 'code-block'}>
      <figcaption>
        <span>{label}</span>
        <button type="button" class="copy-button scripted" data-copy>
          Copy
          <span class="visually-hidden">: {label}</span>
        </button>
      </figcaption>
      <pre tabIndex={0} aria-label={label} role="group">
        {language === undefined ? (
          <code>{code}</code>
        ) : (
          <code dangerouslySetInnerHTML={{ __html: highlight(code, language) }} />
        )}
      </pre>
    </figure>
  );
}

interface TableProps {
  /** What the table shows, in a few words. */
  readonly caption: string;
  /** Columns that hold numbers, or what can be done with a row, are set flush right. */
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

/** A table that scrolls by itself where it is wider than the page. */
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

/** How good or bad something is, which decides the colour of a notice or a badge. */
export type Tone = 'info' | 'ok' | 'warning' | 'danger';

interface NoticeProps {
  readonly tone: Tone;
  /** Whether screen readers announce it: the outcome of what somebody has just done, or what keeps them from it. */
  readonly role?: 'status' | 'alert';
  readonly children: ComponentChildren;
}

/** A paragraph that stands apart from the text. An alert has the focus, so that it is read first. */
export function Notice({ tone, role, children }: NoticeProps): VNode {
  return (
    <p class={`notice tone-${tone}`} role={role} {...(role === 'alert' && { tabIndex: -1, autofocus: true })}>
      {children}
    </p>
  );
}

/** A word in a coloured pill. */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }): VNode {
  return <span class={`badge tone-${tone}`}>{children}</span>;
}

/** A number with its name, within `<dl class="stats">`. */
export function Stat({ name, children }: { readonly name: string; readonly children: ComponentChildren }): VNode {
  return (
    <div class="stat">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A fact with its name, within `<dl class="facts">`. */
export function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }): VNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
