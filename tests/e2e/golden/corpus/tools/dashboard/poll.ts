// Polls the status endpoint for the dashboard on the wall, gently when it is down.

import { isProbeError, type ProbeError, type StatusPage } from "./schema.generated.ts";

export interface BackoffOptions {
  firstMs: number;
  mostMs: number;
  jitter: number;
}

const DEFAULTS: BackoffOptions = { firstMs: 1_000, mostMs: 60_000, jitter: 0.2 };

/** Milliseconds to wait before an attempt, from 0; doubles each time up to a limit. */
export function backoffDelay(
  attempt: number,
  options: BackoffOptions = DEFAULTS,
  random: () => number = Math.random,
): number {
  const base = Math.min(options.mostMs, options.firstMs * 2 ** attempt);
  return Math.round(base * (1 + options.jitter * (2 * random() - 1)));
}

/** Whether trying again can help; a name that does not resolve stays wrong. */
export function isTransient(error: ProbeError): boolean {
  return error.code === "timeout" || error.code === "refused";
}

/** Hand every new status page to `show`, for ever. */
export async function pollStatus(
  url: string,
  show: (page: StatusPage) => void,
  everyMs = 15_000,
): Promise<never> {
  let failures = 0;
  for (;;) {
    let waitMs = everyMs;
    try {
      const response = await fetch(url);
      const body: unknown = await response.json();
      if (isProbeError(body)) {
        if (!isTransient(body)) throw new Error(body.message);
        waitMs = body.retryAfterMs ?? backoffDelay(failures++);
      } else {
        failures = 0;
        show(body as StatusPage);
      }
    } catch (fault) {
      console.error(fault);
      waitMs = backoffDelay(failures++);
    }
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}
