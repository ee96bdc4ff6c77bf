import { createServer } from 'node:http';
import { answer } from './answer.js';
import { listen, LIMITS } from './listen.js';

listen(
  createServer(LIMITS, (request, response) => {
    answer(request, response).catch((error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      response.writeHead(500).end();
    });
  }),
);
