import { inspect } from 'node:util';

/** Does the same with each case of a table. The error of a case that fails begins with the case. */
export async function eachCase<Case>(cases: Iterable<Case>, act: (one: Case) => unknown): Promise<void> {
  for (const one of cases) {
    try {
      await act(one);
    } catch (error) {
      if (error instanceof Error) error.message = `${inspect(one)}: ${error.message}`;
      throw error;
    }
  }
}
