import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { generateApiKey } from '../../src/keys/api-key.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Runs `make contract`; resolves whatever its exit code. */
function makeContract(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<{ code: unknown; output: string }> {
  // Without what the make around this test hands to the makes below it.
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, ...environment };
  return new Promise((resolve) => {
    execFile('make', ['contract', ...args], { cwd: ROOT, env }, (error, stdout, stderr) => {
      resolve({ code: error ? error.code : 0, output: stdout + stderr });
    });
  });
}

describe('make contract', () => {
  const { key } = generateApiKey();
  const secret = key.slice('svc_12345678_'.length);

  it('shows its key in no list of processes', async () => {
    let list = '';
    const server = createServer((request, response) => {
      assert.equal(request.headers.authorization, `Bearer ${key}`);
      list = execFileSync('ps', ['-A', '-ww', '-o', 'args'], { encoding: 'utf8' });
      response.writeHead(401).end();
    }).listen(0, '127.0.0.1');
    try {
      await new Promise((resolve) => server.once('listening', resolve));
      const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const { code, output } = await makeContract([`BASE_URL=${baseUrl}`], { API_KEY: key });
      assert.equal(code, 2);
      assert.match(output, /refuses the key/);
      assert.match(list, new RegExp(`^make contract BASE_URL=${baseUrl}$`, 'm'));
      assert.match(list, /test\/contract\/run\.ts/);
      assert.ok(!list.includes(secret));
      assert.ok(!output.includes(secret), output);
    } finally {
      server.close();
    }
  });

  it('takes no key as an argument, which every user of the machine can read', async () => {
    const { code, output } = await makeContract(['BASE_URL=http://127.0.0.1:1', `API_KEY=${key}`], {});
    assert.equal(code, 2);
    assert.match(output, /^Pass API_KEY in the environment: .* Replace this key, then: /m);
    assert.ok(!output.includes(secret), output);
  });

  it('says what it needs', async () => {
    for (const [args, environment] of [
      [[], { API_KEY: key }],
      [['BASE_URL=http://127.0.0.1:1'], {}],
    ] as const) {
      const { code, output } = await makeContract(args, environment);
      assert.equal(code, 2);
      assert.match(output, /^Set BASE_URL to the deployment, and API_KEY in the environment: /m);
    }
  });
});
