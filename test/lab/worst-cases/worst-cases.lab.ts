import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { AnswerReader } from '../../support/http/answer-reader.js';
import { addTitles } from '../../support/titles.js';
import { testWorld } from '../../support/world.js';
import { harmlessRequest, worstCases } from './requests.js';

/** How long one request may block the process, in milliseconds. */
const BOUND_MS = 5;

/** How many times a kind is sent before it may fail: a busy machine makes most of them slow. */
const ROUNDS = 200;

/** How many times the request is sent that the others are compared with. */
const CONTROL_ROUNDS = 20;

/** Sends requests on one connection, one after the other, and on the next one where it is closed. */
class Client {
  #socket: Socket | undefined;
  #onStatus: (status: number) => void = () => undefined;
  #onFailure: (error: Error) => void = () => undefined;

  constructor(private readonly port: number) {}

  /** @returns how long the answer took, in milliseconds: no shorter than the request blocked the process */
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

  it('no request within the limits of size blocks the server, whatever it repeats', async () => {
    await addTitles(world.db, 300);
    const { key } = await world.newKey();
    const client = new Client(Number(new URL((await world.startServer({ TRUST_PROXY: '9' })).url).port));
    world.defer(() => client.close());
    /** The shortest time of several rounds, which end early with one that is short enough. */
    const shortest = async (request: string, enoughMs: number, rounds: number): Promise<number> => {
      let least = Infinity;
      for (let round = 0; round < rounds && least > enoughMs; round += 1) {
        least = Math.min(least, await client.ask(request));
      }
      return least;
    };
    const control = await shortest(harmlessRequest(key), 0, CONTROL_ROUNDS);
    const slow: string[] = [];
    for (const { what, request } of worstCases(key)) {
      const ms = await shortest(request, control + BOUND_MS, ROUNDS);
      if (ms > control + BOUND_MS) slow.push(`${what}: ${ms.toFixed(1)} ms`);
    }
    assert.deepEqual(slow, [], `a harmless one: ${control.toFixed(1)} ms`);
  });
});
