/** A mistake of a developer: the wrong code in place of the right one, and the compiler's error. */
export interface Mistake {
  readonly right: string;
  readonly wrong: string;
  readonly error: RegExp;
}

/** A client made from the contract by a public generator. */
export interface Client {
  /** The npm package. */
  readonly generator: string;
  /** The beginning, in `consumers/`, of the program that uses it. */
  readonly consumer: string;
  readonly mistakes: readonly Mistake[];
}

/** Mistakes that every client reveals. */
const MISTAKES: readonly Mistake[] = [
  { right: 'entries[0]?.svc_id', wrong: 'entries[0]?.id', error: /TS2339: Property 'id' does not exist/ },
  { right: 'entries[0]?.svc_id', wrong: 'entries[0].svc_id', error: /TS2532: Object is possibly 'undefined'/ },
  { right: 'data.meta.next_since', wrong: 'data.next_since', error: /TS2339: Property 'next_since' does not exist/ },
  { right: "media_type === 'movie'", wrong: "media_type === 'film'", error: /TS2367: .* have no overlap/ },
  {
    right: 'people.toFixed()',
    wrong: 'people.trim()',
    error: /TS2339: Property 'trim' does not exist on type 'number'/,
  },
  { right: 'plan.id', wrong: 'plan', error: /TS2339: Property 'toUpperCase' does not exist/ },
  {
    right: 'title: title.data?.data',
    wrong: 'title: title.data.data',
    error: /TS18048: 'title.data' is possibly 'und/,
  },
  { right: '{ title_id: id }', wrong: '{ id }', error: /TS2353: .* 'id' does not exist/ },
  { right: 'query: { since }', wrong: 'query: {}', error: /TS2741: Property 'since' is missing/ },
  // Codes may be added, so any text is one. Not every problem has a position.
  { right: 'error.oldest_since ?? NaN', wrong: 'error.oldest_since', error: /TS2532: Object is possibly 'undefined'/ },
];

export const CLIENTS: readonly Client[] = [
  {
    generator: 'openapi-fetch',
    consumer: 'openapi-fetch',
    mistakes: [
      ...MISTAKES,
      { right: '/titles/{title_id}', wrong: '/titles', error: /TS2345: .*'"\/api\/v1\/titles"'/ },
      { right: 'client.GET', wrong: 'client.POST', error: /TS2345: / },
    ],
  },
  {
    generator: '@hey-api/openapi-ts',
    consumer: 'hey-api',
    mistakes: [
      ...MISTAKES,
      { right: 'catalog.getTitle(', wrong: 'catalog.getPeople(', error: /TS2339: Property 'getPeople' does not exist/ },
    ],
  },
];
