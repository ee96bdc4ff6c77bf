import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { sendNotice, type Delivery } from '../../src/notices/webhook.js';
import { readGuide } from '../support/guides.js';
import { listenLocally } from '../support/http/local-server.js';
import { freePort } from '../support/programs/free-port.js';
import { runCommand } from '../support/programs/command.js';
import { startReceiver, TOKEN, type Receiver } from './receiver.js';

const NOTICE = {
  id: 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6',
  type: 'notice.test',
  occurredAt: '2026-01-31T18:00:00.000000Z',
  data: {},
};

const HEAD = 'HTTP/1.1 200 OK\r\n';

const ADVICE = 'Check NOTIFY_URL and that its receiver answers with a status from 200 to 299.';

/** Receivers that respond in a wrong way: what they send, and the failure. */
const WRONG: readonly (readonly [
  what: string,
  respond: (socket: Socket) => unknown,
  reason: RegExp,
  timeoutMs?: number,
])[] = [
  ['nothing', () => undefined, /^no response within 0\.3 s$/, 300],
  ['a header without an end', (socket) => endlessly(socket, `${HEAD}X: `), /^UND_ERR_HEADERS_OVERFLOW$/],
  ['something other than HTTP', (socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'), /^the response is not HTTP$/],
  ['the end of the connection', (socket) => socket.end(), /^UND_ERR_SOCKET$/],
  [
    'a redirect',
    (socket) => socket.end('HTTP/1.1 307 Temporary Redirect\r\nLocation: /\r\nContent-Length: 0\r\n\r\n'),
    /^status 307$/,
  ],
  ['an error', (socket) => socket.end('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n'), /^status 503$/],
];

function endlessly(socket: Socket, start: string): void {
  socket.write(start);
  const more = (): void => void (socket.destroyed || socket.write('x'.repeat(1_000), more));
  more();
}

describe('the webhook of the operator', () => {
  const closers: (() => unknown)[] = [];
  let receiver: Receiver;

  before(async () => (receiver = await startReceiver({ defer: (close) => closers.push(close) })));
  after(() => closers.forEach((close) => close()));

  /** Sends a notice to a server that responds in its own way. */
  async function sendTo(respond: (socket: Socket) => unknown, timeoutMs?: number): Promise<Delivery> {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket.on('error', () => undefined));
      socket.once('data', () => respond(socket));
    });
    const { url, stop } = await listenLocally(server);
    try {
      const delivery = await sendNotice(
        { url, secret: Buffer.alloc(24) },
        NOTICE,
        timeoutMs === undefined ? {} : { timeoutMs },
      );
      // One attempt, whose bound may pass before its request arrives.
      assert.ok(sockets.length <= 1, `${sockets.length} attempts`);
      return delivery;
    } finally {
      for (const socket of sockets) socket.destroy();
      await stop();
    }
  }

  it('a notice fails with a reason when its receiver responds in a wrong way', async () => {
    for (const [what, respond, reason, timeoutMs] of WRONG) {
      const delivery = await sendTo(respond, timeoutMs);
      assert.match(delivery.kind === 'failed' ? delivery.reason : 'delivered', reason, what);
    }
  });

  it('a notice is delivered as soon as its receiver responds with 200, and an endless body is not read', async () => {
    let sent = 0;
    const delivery = await sendTo((socket) => {
      endlessly(socket, `${HEAD}Content-Type: text/plain\r\n\r\n`);
      socket.once('close', () => (sent = socket.bytesWritten));
    });
    assert.deepEqual(delivery, { kind: 'delivered', status: 200 });
    assert.ok(sent < 16 * 1024 * 1024, String(sent));
  });

  /** Runs `catalog notices test`. */
  function testNotice(settings: Readonly<Record<string, string>>, ...args: string[]) {
    return runCommand(['notices', 'test', ...args], settings);
  }

  it('"notices test" sends a notice and reports the status, or why it was not delivered, and never the address', async () => {
    assert.deepEqual(await testNotice(receiver.settings), {
      code: 0,
      stdout: 'The receiver accepted the notice with status 204.\n',
      stderr: '',
    });
    assert.equal(receiver.find('notice.test').length, 1);
    receiver.respond = (response) => response.writeHead(404).end(TOKEN);
    const failed = await testNotice(receiver.settings, '--json');
    assert.deepEqual(failed, {
      code: 1,
      stdout: '',
      stderr: `catalog: The notice was not delivered: status 404. ${ADVICE}\n`,
    });
    const down = `http://127.0.0.1:${await freePort()}/${TOKEN}`;
    const { code, stderr } = await testNotice({ ...receiver.settings, NOTIFY_URL: down });
    assert.deepEqual([code, stderr], [1, `catalog: The notice was not delivered: ECONNREFUSED. ${ADVICE}\n`]);
    assert.match((await testNotice({})).stderr, /^catalog: Set NOTIFY_URL and NOTIFY_SECRET as for your servers\.\n$/);
    receiver.respond = (response) => response.writeHead(204).end();
  });

  it('a notice is not sent without TLS beyond this machine, nor without a secret, and no error repeats the address', async () => {
    const { NOTIFY_SECRET, NOTIFY_URL } = receiver.settings;
    for (const [settings, problem] of [
      [{ NOTIFY_SECRET, NOTIFY_URL: `http://hooks.example/${TOKEN}` }, /NOTIFY_URL must be an https:\/\/ URL/],
      [{ NOTIFY_URL }, /NOTIFY_URL requires NOTIFY_SECRET/],
      [{ NOTIFY_URL, NOTIFY_SECRET: `whsec_${TOKEN}` }, /NOTIFY_SECRET must be whsec_/],
    ] as const) {
      const { code, stderr } = await testNotice(settings);
      assert.equal(code, 1);
      assert.match(stderr, problem);
      assert.ok(!stderr.includes(TOKEN), stderr);
    }
  });

  it('the program of the guide accepts signed notices, refuses others, old ones and large ones, and survives an aborted one', async () => {
    const program = /```js\n([\s\S]+?)```/.exec(await readGuide('notices'))?.[1] ?? assert.fail('no program');
    const port = await freePort();
    const child = spawn(
      process.execPath,
      [
        '--input-type=module',
        '--eval',
        program.replace('listen(8081)', `listen(${port}, () => console.log('listening'))`),
      ],
      { env: { NOTIFY_SECRET: receiver.settings.NOTIFY_SECRET }, stdio: ['ignore', 'pipe', 'inherit'] },
    );
    closers.push(() => child.kill());
    let printed = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
    await once(child.stdout, 'data');
    const url = `http://127.0.0.1:${port}/`;
    const settings = { ...receiver.settings, NOTIFY_URL: url };
    assert.equal((await testNotice(settings)).code, 0);
    assert.match(printed, /notice\.test/);
    const aborted = connect(port, '127.0.0.1');
    aborted.end('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{').resume();
    await once(aborted, 'close');
    const large = await fetch(url, { method: 'POST', body: 'x'.repeat(65_537) });
    assert.equal(large.status, 413);
    const another = { ...settings, NOTIFY_SECRET: `whsec_${'A'.repeat(32)}` };
    assert.match((await testNotice(another)).stderr, /status 401/);
    await testNotice(receiver.settings);
    const { headers, text } = receiver.received.at(-1) ?? assert.fail();
    const old = { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) - 600) };
    const resend = async (fields: object): Promise<number> =>
      (
        await fetch(url, {
          method: 'POST',
          headers: new Headers(
            Object.entries(fields).filter(([name]) => name.startsWith('webhook-')) as [string, string][],
          ),
          body: text,
        })
      ).status;
    assert.deepEqual([await resend(headers), await resend(old), await resend({})], [204, 401, 401]);
  });
});
