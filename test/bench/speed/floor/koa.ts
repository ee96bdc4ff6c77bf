import { createServer } from 'node:http';
import Koa from 'koa';
import pino from 'pino';
import { Counter, Histogram } from 'prom-client';
import { answer } from './answer.js';
import type { Response } from './answers.js';
import { listen, LIMITS } from './listen.js';

// The work of the floor on Koa. Each request has a line of the log and two metrics, as the libraries' documentation shows
// them. So its distance to the floor is what these libraries cost. The service's distance to it is our own code.

const log = pino(
  { timestamp: pino.stdTimeFunctions.isoTime },
  pino.destination({ dest: 1, sync: false, minLength: 4_096 }),
);
const total = new Counter({ name: 'requests_total', help: 'Requests.', labelNames: ['path', 'status'] });
const duration = new Histogram({ name: 'request_duration_seconds', help: 'Time to the answer.', labelNames: ['path'] });

/** The first part of a path under the API: few values, as the label of a metric needs. */
const OPERATION = /^\/api\/v1\/([a-z]+)/;

const app = new Koa();

app.use((ctx, next) => {
  const { req, res } = ctx;
  const startedAt = performance.now();
  res.once('close', () => {
    const milliseconds = performance.now() - startedAt;
    const path = OPERATION.exec(req.url ?? '')?.[1] ?? 'none';
    total.inc({ path, status: res.statusCode });
    duration.observe({ path }, milliseconds / 1000);
    log.info(
      {
        request_id: res.getHeader('X-Request-Id'),
        method: req.method,
        url: req.url,
        status: res.statusCode,
        duration_ms: milliseconds,
      },
      'request',
    );
  });
  return next();
});

app.use(async (ctx) => {
  const response: Response = {
    writeHead(status, fields = []) {
      ctx.status = status;
      for (let i = 0; i < fields.length; i += 2) ctx.set(fields[i] ?? '', fields[i + 1] ?? '');
      return response;
    },
    end(body) {
      if (body !== undefined) ctx.body = body;
    },
  };
  await answer(ctx.req, response);
});

const handle = app.callback();
listen(createServer(LIMITS, (request, response) => void handle(request, response)));
