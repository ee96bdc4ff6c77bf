import assert from 'node:assert/strict';
import { parseTraceParent } from '../../../src/platform/telemetry/trace-parent.js';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

describe('parseTraceParent', () => {
  for (const [field, isSampled] of [
    [`00-${TRACE}-${SPAN}-01`, true],
    [`00-${TRACE}-${SPAN}-00`, false],
    [`00-${TRACE}-${SPAN}-03`, true],
    [`00-${TRACE}-${SPAN}-fe`, false],
    [`01-${TRACE}-${SPAN}-01`, true],
    [`cc-${TRACE}-${SPAN}-01-what-the-future-will-be-like`, true],
  ] as const) {
    it(`the traceparent ${field} is read`, () => {
      assert.deepEqual(parseTraceParent(field), { traceId: TRACE, spanId: SPAN, isSampled });
    });
  }

  for (const [what, field] of [
    ['no traceparent', undefined],
    ['an empty traceparent', ''],
    ['two traceparents', `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
    ['a list of traceparents', [`00-${TRACE}-${SPAN}-01`]],
    ['capitals in a traceparent', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['a span id of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['a short trace id', `00-${TRACE.slice(1)}-${SPAN}-01`],
    ['a long span id', `00-${TRACE}-${SPAN}0-01`],
    ['a traceparent without flags', `00-${TRACE}-${SPAN}`],
    ['a digit too many', `00-${TRACE}-${SPAN}-012`],
    ['the forbidden version', `ff-${TRACE}-${SPAN}-01`],
    ['further parts of version 00', `00-${TRACE}-${SPAN}-01-more`],
    ['a letter that is no digit', `00-${TRACE.replace('b', 'g')}-${SPAN}-01`],
    ['a blank at the end', `00-${TRACE}-${SPAN}-01 `],
  ] as const) {
    it(`${what} is ignored`, () => {
      assert.equal(parseTraceParent(field as string | string[] | undefined), undefined);
    });
  }
});
