import type { Worker } from 'node:cluster';

/**
 * Closes a connection that was on its way to a worker when the worker died.
 *
 * node:cluster sends one connection at a time to a worker, and closes its own copy when the worker has confirmed. When
 * the worker dies first, the copy stays open, and the client waits for ever. So the last connection that was sent is
 * closed with the worker. If it was confirmed, it is closed already, and closing it again does nothing.
 */
export function closeConnectionInTransit({ process: child }: Worker): void {
  // Without a process there is no channel.
  if (child.pid === undefined) return;
  const send = child.send.bind(child) as (...args: unknown[]) => boolean;
  let last: { close?: () => void } | undefined;
  child.send = (message: unknown, handle?: unknown, ...rest: unknown[]) => {
    if (typeof handle === 'object' && handle !== null) last = handle;
    return send(message, handle, ...rest);
  };
  child.once('exit', () => last?.close?.());
}
