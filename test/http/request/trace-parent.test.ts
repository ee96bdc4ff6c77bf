import assert from 'node:assert/strict';
import { parseTraceId } from '../../../src/http/request/prepare-request.js';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

const WELL_FORMED = [
  `00-${TRACE}-${SPAN}-01`,
  `00-${TRACE}-${SPAN}-00`,
  `01-${TRACE}-${SPAN}-01`,
  `cc-${TRACE}-${SPAN}-01-what-the-future-will-be-like`,
];

const MALFORMED: Readonly<Record<string, string | string[] | undefined>> = {
  'no field': undefined,
  'an empty field': '',
  'two fields': `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
  'a list of fields': [`00-${TRACE}-${SPAN}-01`],
  capitals: `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  'a trace id of zeros': `00-${'0'.repeat(32)}-${SPAN}-01`,
  'a span id of zeros': `00-${TRACE}-${'0'.repeat(16)}-01`,
  'a short trace id': `00-${TRACE.slice(1)}-${SPAN}-01`,
  'a long span id': `00-${TRACE}-${SPAN}0-01`,
  'no flags': `00-${TRACE}-${SPAN}`,
  'a digit too many': `00-${TRACE}-${SPAN}-012`,
  'the forbidden version': `ff-${TRACE}-${SPAN}-01`,
  'further parts of version 00': `00-${TRACE}-${SPAN}-01-more`,
  'a letter that is no digit': `00-${TRACE.replace('b', 'g')}-${SPAN}-01`,
  'a blank at the end': `00-${TRACE}-${SPAN}-01 `,
};

describe('the trace id of a traceparent', () => {
  it('the trace id of a well-formed traceparent is read', () => {
    for (const field of WELL_FORMED) assert.equal(parseTraceId(field), TRACE, field);
  });

  it('a malformed traceparent is ignored', () => {
    for (const [what, field] of Object.entries(MALFORMED)) assert.equal(parseTraceId(field), undefined, what);
  });
});
