import { writeSync } from 'node:fs';
import { OperatorError } from '../../errors.js';
import { LogOutput } from '../../platform/telemetry/log-output.js';
import { createLog, lossLine, type Logs } from '../../platform/telemetry/log.js';
import type { CommandContext } from '../context.js';

/** How long the end of the process waits for a reader of the last lines, in milliseconds. */
const LAST_LINES_MS = 1_000;

const STDOUT = 1;
const STDERR = 2;

export interface ServerLog {
  readonly logs: Logs;
  /** Writes a text for people among the lines. */
  readonly write: (text: string) => void;
  /** Aborted when the server must end: on a signal, or when nobody reads the log any more. */
  readonly ending: AbortSignal;
  /** Waits for the last lines, within a bound. @throws OperatorError when nobody reads the log any more */
  close(): Promise<void>;
}

/** Opens the log. Lost lines are reported on standard error. */
export function openServerLog(context: CommandContext): ServerLog {
  const { stdout, stderr, signal, pid, workerId } = context;
  const members = workerId === undefined ? {} : { worker: workerId, pid };
  const unread = new AbortController();
  const output = new LogOutput(stdout.fd ?? STDOUT, {
    lossLine: lossLine(members),
    warn: (message) => warn(stderr.fd ?? STDERR, message),
    onUnread: () => unread.abort(),
  });
  const logs = createLog(context.config().logLevel, output, members);
  context.atExit(logs.flush);
  return {
    logs,
    write: (text) => {
      logs.flush();
      output.write(text);
    },
    ending: AbortSignal.any([signal, unread.signal]),
    async close() {
      logs.flush();
      await output.settle(LAST_LINES_MS);
      if (unread.signal.aborted) {
        throw new OperatorError('Nobody reads the log on standard output any more, so the server has ended.');
      }
    },
  };
}

/** Writes a message to the operator, if that is possible without waiting. */
function warn(fd: number, message: string): void {
  try {
    writeSync(fd, `catalog: ${message}\n`);
  } catch {
    // The message cannot be written either.
  }
}
