import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { send } from '../support/request.js';
import type { Question } from './questions.js';

/** Connections to each server, each with one request at a time. */
const CONNECTIONS = 4;

/** Between two requests on one connection, in milliseconds. */
const PAUSE_MS = 80;

/** What came back, counted. */
interface Tally {
  served: number;
  refused: number;
  unavailable: number;
  /** What was wrong, each once a request. */
  readonly wrong: string[];
  /** How often a question was answered with 200 or 304, by its name. */
  readonly servedByName: Record<string, number>;
}

/** Keeps servers busy with questions, and judges each answer. */
export class Load {
  /** Whether what needs the database may be answered with 503. What is under way when this changes may as well. */
  mayBeUnavailable = false;
  readonly tally: Tally = { served: 0, refused: 0, unavailable: 0, wrong: [], servedByName: {} };
  #isOver = false;
  readonly #loops: Promise<void>[];

  constructor(urls: readonly string[], questions: readonly Question[]) {
    this.#loops = urls.flatMap((url) =>
      Array.from({ length: CONNECTIONS }, (_, index) => this.#loop(url, questions, index)),
    );
  }

  /** Requests that were answered as they should be. */
  get answered(): number {
    const { served, refused, unavailable } = this.tally;
    return served + refused + unavailable;
  }

  /** Ends it when all that is under way is answered. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loops);
  }

  async #loop(url: string, questions: readonly Question[], first: number): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let turn = first; !this.#isOver; turn += 1) {
      const question = questions[turn % questions.length];
      if (question !== undefined) await this.#ask(url, question, agent);
      await delay(PAUSE_MS);
    }
    agent.destroy();
  }

  async #ask(url: string, question: Question, agent: Agent): Promise<void> {
    const { tally } = this;
    const couldBeUnavailable = this.mayBeUnavailable;
    const startedAt = performance.now();
    try {
      const reply = await send(url, question.path, { headers: question.headers(), agent });
      const verdict = question.judge(reply, startedAt);
      if (typeof verdict === 'object') tally.wrong.push(`${question.name}: ${verdict.wrong}`);
      else if (verdict === 'unavailable' && !couldBeUnavailable && !this.mayBeUnavailable)
        tally.wrong.push(`${question.name}: 503 where nothing needed is lost`);
      else tally[verdict] += 1;
      if (verdict === 'served') tally.servedByName[question.name] = (tally.servedByName[question.name] ?? 0) + 1;
    } catch (error) {
      // A connection that is refused or cut is no answer at all.
      tally.wrong.push(`${question.name}: ${String(error)}`);
    }
  }
}
