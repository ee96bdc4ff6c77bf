import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { AnswerReader } from '../support/http/answer-reader.js';
import { addTitles } from '../support/titles.js';
import { testWorld } from '../support/world.js';
import { harmlessRequest, worstCases } from './requests.js';

/** How long one request may block the process, in milliseconds. */
const BOUND_MS = 5;

/** How many requests of a kind are sent at the same time, each on a connection of its own. */
const AT_ONCE = 4;

/** How many times a kind is sent before it may fail: a busy machine makes most of them slow. */
const ROUNDS = 200;

/** How many times the request is sent that the others are compared with. */
const CONTROL_ROUNDS = 20;

/** Bound on one answer, in milliseconds. */
const TIMEOUT_MS = 20_000;

const BYSTANDER = 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n';

/** How long something took in the best of several rounds, in milliseconds. */
interface Times {
  /** From a request, sent alone, to its answer: no shorter than it blocks the process. */
  readonly alone: number;
  /** The longest that another client waits for an answer while several such requests are in flight. */
  readonly beside: number;
}

/** Sends requests on one connection, one after the other, and on the next one where it is closed. */
class Client {
  #socket: Socket | undefined;
  #onStatus: (status: number) => void = () => undefined;
  #onFailure: (error: Error) => void = () => undefined;

  constructor(private readonly port: number) {}

  /** @returns how long the answer took, in milliseconds */
  async ask(request: string): Promise<number> {
    const socket = (this.#socket ??= this.#connect());
    const startedAt = performance.now();
    const status = await new Promise<number>((resolve, reject) => {
      this.#onStatus = resolve;
      this.#onFailure = reject;
      socket.write(Buffer.from(request, 'latin1'));
    });
    // Neither a fault of the service nor one of the table: the request is read to its end.
    assert.ok([200, 400, 401, 404, 429, 503].includes(status), String(status));
    return performance.now() - startedAt;
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #connect(): Socket {
    const reader = new AnswerReader();
    const socket = connect({ host: '127.0.0.1', port: this.port, noDelay: true });
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error('no answer')));
    socket.on('data', (bytes) => {
      const status = reader.read(bytes);
      if (status !== undefined) this.#onStatus(status);
    });
    socket.on('error', (error) => this.#onFailure(error));
    return socket;
  }
}

describe('a request as large as the limits allow', () => {
  const world = testWorld({ redis: true });
  let key: string;
  let clients: Client[];
  let bystander: Client;
  let control: Times;

  before(async () => {
    await addTitles(world.db, 300);
    ({ key } = await world.newKey());
    const port = Number(new URL((await world.startServer({ TRUST_PROXY: '9' })).url).port);
    clients = Array.from({ length: AT_ONCE }, () => new Client(port));
    bystander = new Client(port);
    world.defer(() => {
      for (const client of [...clients, bystander]) client.close();
    });
    control = await timesOf(harmlessRequest(key), () => false, CONTROL_ROUNDS);
  });

  /** @param isEnough - ends the rounds early */
  async function timesOf(request: string, isEnough: (times: Times) => boolean, rounds = ROUNDS): Promise<Times> {
    let times: Times = { alone: Infinity, beside: Infinity };
    for (let round = 0; round < rounds && !isEnough(times); round += 1) {
      const alone = (await clients[0]?.ask(request)) ?? assert.fail();
      const state = { isOver: false };
      const crowd = Promise.all(clients.map((client) => client.ask(request))).finally(() => (state.isOver = true));
      let beside = 0;
      while (!state.isOver) beside = Math.max(beside, await bystander.ask(BYSTANDER));
      await crowd;
      times = { alone: Math.min(times.alone, alone), beside: Math.min(times.beside, beside) };
    }
    return times;
  }

  it('no request within the limits of size blocks the server, whatever it repeats', async () => {
    const slow: string[] = [];
    for (const { what, request } of worstCases(key)) {
      const isShort = ({ alone, beside }: Times): boolean =>
        alone <= control.alone + BOUND_MS && beside <= control.beside + AT_ONCE * BOUND_MS;
      const times = await timesOf(request, isShort);
      if (!isShort(times)) slow.push(`${what}: ${times.alone.toFixed(1)} ms, beside it ${times.beside.toFixed(1)} ms`);
    }
    assert.deepEqual(
      slow,
      [],
      `a harmless one: ${control.alone.toFixed(1)} ms, beside it ${control.beside.toFixed(1)} ms`,
    );
  }).timeout(300_000);
});
