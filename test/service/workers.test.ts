import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';

const BUILD = new URL('../../.build/', import.meta.url);

/** Whether a process that imports modules of the service has loaded Koa, and so the application. */
function loadsApplication(...modules: readonly string[]): boolean {
  const script = `
    import { createRequire } from 'node:module';
    for (const url of ${JSON.stringify(modules.map((module) => new URL(module, BUILD).href))}) await import(url);
    console.log(Object.keys(createRequire(import.meta.url).cache).some((path) => path.includes('/koa/')));
  `;
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: new URL('../../', import.meta.url),
    encoding: 'utf8',
  });
  return JSON.parse(output) as boolean;
}

describe('what a process of the service loads', () => {
  it('is the application, where it answers requests', () => {
    assert.equal(loadsApplication('service/create-service.js'), true);
  });

  it('is not the application in the primary, which would take memory and delay the start', () => {
    assert.equal(loadsApplication('commands/serve/serve.js', 'service/workers.js'), false);
  });
});
