import { showPosition } from '../follower/client.js';
import type { CopySource } from './copy-source.js';
import type { MirrorStatus } from './status.js';
import { MirrorStore, type StoreOptions } from './store.js';
import { compare, type Comparison } from './verify.js';

export interface VerifyNewCopiesOptions {
  readonly store: StoreOptions;
  readonly source: CopySource;
  readonly status: MirrorStatus;
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
}

/** How often to look for a new copy, in milliseconds. */
const EVERY_MS = 600_000;

/** Compares a running mirror with each new copy, once. */
export class NewCopies {
  #next = 0;
  #running: Promise<Comparison | undefined> = Promise.resolve(undefined);
  #isRunning = false;

  constructor(private readonly options: VerifyNewCopiesOptions) {}

  /** Looks for a new copy if it is time to. Call it when the mirror has every entry. */
  look(): void {
    if (this.#isRunning || Date.now() < this.#next) return;
    this.#next = Date.now() + EVERY_MS;
    this.#isRunning = true;
    this.#running = this.#verify().finally(() => (this.#isRunning = false));
  }

  /** @returns the last comparison, once it has ended; undefined without one, and after a failure */
  settled(): Promise<Comparison | undefined> {
    return this.#running;
  }

  async #verify(): Promise<Comparison | undefined> {
    const { source, status, signal, print } = this.options;
    let store: MirrorStore | undefined;
    try {
      const manifest = await source.readManifest(signal);
      if (manifest === undefined) return undefined;
      store = await MirrorStore.open(this.options.store, false);
      const state = await store.readState();
      if (Date.parse(state?.verifiedCopy ?? '') === Date.parse(manifest.created_at)) return undefined;
      const result = await compare(store, manifest, source, signal);
      await store.saveVerification(manifest, result.differences);
      status.verification = { differences: result.differences, at: Date.now() };
      const found = result.differences === 0 ? 'equal' : `${result.differences} rows differ`;
      print(`Compared with the copy of ${showPosition(manifest.position)}: ${found}.`);
      return result;
    } catch (error) {
      if (!signal.aborted) print(`The comparison with the newest copy failed: ${(error as Error).message}`);
      return undefined;
    } finally {
      store?.close();
    }
  }
}
