import { AsyncLocalStorage } from 'node:async_hooks';

/** What a part of a request waits for, by the names of OpenTelemetry's conventions. */
export type TracedSystem = 'postgresql' | 'redis';

/** A span of a trace that is being recorded. */
export interface ActiveSpan {
  /** Begins a part of it. @param system - undefined for work of this process */
  child(name: string, system: TracedSystem | undefined): ActiveSpan;
  /** @param error - why the work failed, if it did */
  end(error?: unknown): void;
}

/** The span of the current request. It has none where nothing records traces, and then costs next to nothing. */
const current = new AsyncLocalStorage<ActiveSpan>();

/** Runs work as part of a span, which the caller ends. */
export function runInSpan<T>(span: ActiveSpan, work: () => T): T {
  return current.run(span, work);
}

/**
 * Runs a part of a request's work in a span of its own, if the trace of the request is recorded. Work that requests share
 * is a span in each of their traces, as long as that request has waited.
 *
 * @param name - never contains text of a client
 * @param system - undefined for work of this process
 * @example traced('charge', 'redis', () => limiter.charge(caller))
 */
export function traced<T>(name: string, system: TracedSystem | undefined, work: () => Promise<T>): Promise<T> {
  const parent = current.getStore();
  return parent === undefined ? work() : runAsChild(parent.child(name, system), work);
}

async function runAsChild<T>(span: ActiveSpan, work: () => Promise<T>): Promise<T> {
  try {
    const result = await current.run(span, work);
    span.end();
    return result;
  } catch (error) {
    span.end(error);
    throw error;
  }
}
