import { lock, type LockOptions } from 'proper-lockfile';
import { OperatorError } from '../../errors.js';

/** A lock between processes, which expires unless its holder refreshes it. */
export interface PathLock {
  /** Aborted, with an OperatorError as its reason, when another process has taken the lock. */
  readonly lost: AbortSignal;
  /** Releases the lock, unless another process has taken it. */
  readonly release: () => Promise<void>;
}

export interface PathLockOptions extends Pick<LockOptions, 'lockfilePath' | 'retries' | 'stale' | 'update'> {
  /** The error when another process holds the lock, what to do then, and the error when one takes it later. */
  readonly messages: { readonly held: string; readonly advice?: string; readonly lost: string };
}

/**
 * Locks a file or folder, which need not exist, by proper-lockfile.
 *
 * @throws OperatorError when another process holds the lock, or it cannot be created
 */
export async function lockPath(path: string, { messages, ...options }: PathLockOptions): Promise<PathLock> {
  const lost = new AbortController();
  try {
    const release = await lock(path, {
      ...options,
      realpath: false,
      onCompromised: () => lost.abort(new OperatorError(messages.lost)),
    });
    // Fails when another process has taken the lock. Then there is nothing to release.
    return { lost: lost.signal, release: () => release().catch(() => undefined) };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw code === 'ELOCKED'
      ? new OperatorError(messages.held, { advice: messages.advice, cause: error })
      : new OperatorError(`Cannot lock ${path}: ${message}.`, { cause: error });
  }
}
