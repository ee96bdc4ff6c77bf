import type { Context } from 'mocha';

/**
 * Skips a test, or all of a suite from its `before` hook, that needs a part which this machine does not have. Each line
 * of the report then names the part. On a build machine, a skipped test without such a line is a failure (see
 * reporter.cjs).
 *
 * @param part - such as `IPv6`
 */
export function skipWithout(part: string, context: Context): never {
  const reason = ` (needs ${part}, which this machine lacks)`;
  const { test } = context;
  if ((test as { readonly type?: string } | undefined)?.type === 'hook')
    test?.parent?.eachTest((each) => (each.title += reason));
  else if (test) test.title += reason;
  return context.skip();
}
