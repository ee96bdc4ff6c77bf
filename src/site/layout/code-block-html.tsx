import { render } from 'preact-render-to-string';
import { CodeBlock } from './components.js';

/** The same as {@link CodeBlock}, as text: for code in Markdown. */
export function codeBlockHtml(label: string, code: string): string {
  return render(<CodeBlock label={label} code={code} />);
}
