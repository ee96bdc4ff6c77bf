import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { ProgressDisplay } from '../../src/commands/output/progress-display.js';

const ERASE = '\r\u001b[K';

describe('the display of progress', () => {
  function terminal(isTTY: boolean): { readonly display: ProgressDisplay; readonly output: () => string } {
    const stream = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY });
    const display = new ProgressDisplay(stream, { label: 'titles', isEnabled: true });
    return { display, output: () => String(stream.read() ?? '') };
  }

  it('a line that is printed while progress is shown stands above it', () => {
    const { display, output } = terminal(true);
    display.update({ phase: 'reading', rows: 1_500, bytes: 50, total: 100 });
    const shown = `${ERASE}titles: reading: 50 %, 1,500 rows`;
    assert.equal(output(), shown);
    display.printLine('The service is busy.');
    assert.equal(output(), `${ERASE}The service is busy.\n${shown}`);
    display.stop();
    assert.equal(output(), ERASE);
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
