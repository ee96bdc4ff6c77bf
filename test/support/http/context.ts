import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import Koa from 'koa';
import type { RequestContext } from '../../../src/http/request/context.js';

/** Makes the Koa context of a request, without a server. @param headers - by their names in small letters */
export function contextOf(headers: Readonly<Record<string, string>> = {}): RequestContext {
  const request = new IncomingMessage(new Socket());
  Object.assign(request.headers, headers);
  return new Koa().createContext(request, new ServerResponse(request));
}
