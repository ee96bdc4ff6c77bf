import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { ProgressDisplay } from '../../src/commands/output/progress-display.js';

/** What a terminal gets to save the position of its cursor, to return there, and to wrap long lines again. */
const [SAVE, RETURN, WRAP] = ['\u001b7', '\u001b8', '\u001b[?7h'];

describe('the display of progress', () => {
  let stop = (): void => undefined;

  // A bar that is still shown would keep the process.
  afterEach(() => stop());

  function terminal(isTTY: boolean): { readonly display: ProgressDisplay; readonly output: () => string } {
    const stream = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY });
    const display = new ProgressDisplay(stream, { label: 'titles', isEnabled: true });
    stop = () => display.stop();
    return {
      display,
      output: () => String(stream.read() ?? ''),
    };
  }

  it('a line that is printed while a bar is shown stands above it, whole, and the bar continues below', () => {
    const { display, output } = terminal(true);
    display.update({ phase: 'reading', rows: 500, bytes: 50, total: 100 });
    assert.match(output(), /titles: reading =+-+ 50% \| 500 rows \| 0s/);
    display.printLine('The service is busy.');
    const [before = '', after = ''] = output().split('The service is busy.\n');
    assert.ok(before.lastIndexOf(RETURN) > before.lastIndexOf(SAVE), 'the bar is gone');
    assert.ok(before.includes(WRAP), 'a long line is not cut');
    assert.match(after, /50% \| 500 rows/, 'the bar is drawn again at once');
    assert.ok(after.includes(SAVE) && !after.includes(RETURN), 'it starts where it now is');
    display.stop();
    output();
    display.printLine('Done.');
    assert.equal(output(), 'Done.\n');
  });

  it('without a terminal, only lines are printed', () => {
    const { display, output } = terminal(false);
    display.update({ phase: 'writing', rows: 1, bytes: 0, total: 2 });
    display.printLine('A line.');
    display.stop();
    assert.equal(output(), 'A line.\n');
  });
});
