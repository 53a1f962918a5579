// Requests to the server. The key goes in a header, never in a URL. Every failure is a Failure with a message.

export class Failure extends Error {
	constructor(status, told) {
		super(told.message || `The server answered ${status}.`);
		Object.assign(this, { status, code: told.code, details: told.details });
	}
}

const KEY = "quire-key";
const remembered = () => {
	try { return sessionStorage.getItem(KEY); } catch { return null; }
};
let key = remembered();
let asking = null;
let askForKey = async () => null;
export const onKeyNeeded = (ask) => { askForKey = ask; };

function addressed(path, query) {
	const params = new URLSearchParams();
	for (const [name, value] of Object.entries(query || {})) {
		for (const one of [value].flat()) {
			if (one !== null && one !== undefined && one !== "" && one !== false) params.append(name, one);
		}
	}
	return params.size ? `${path}?${params}` : path;
}

async function send(path, given) {
	const { query, body, bytes, method, signal, keepalive, accept } = given;
	const headers = { Accept: accept || "application/json" };
	if (key) headers.Authorization = `Bearer ${key}`;
	if (body) headers["Content-Type"] = "application/json";
	if (bytes) headers["Content-Type"] = "application/octet-stream";
	if (method) headers["Content-Type"] = "application/json";
	const content = body ? JSON.stringify(body) : bytes;
	const how = { method: method || (content ? "POST" : "GET"), headers, signal, keepalive, body: content };
	try {
		return await fetch(addressed(path, query), how);
	} catch (problem) {
		if (problem.name === "AbortError") throw problem;
		throw new Failure(0, { message: "The server does not answer. Is quire serve still running?" });
	}
}

async function failure(response) {
	const told = await response.json().catch(() => ({}));
	const wait = response.headers.get("Retry-After");
	if (response.status === 429 && wait) told.message = `${told.message || "Too many requests."} Try again in ${wait} s.`;
	return new Failure(response.status, told);
}

export function forgetKey() {
	sessionStorage.removeItem(KEY);
	location.reload();
}

async function newKey(message) {
	asking ??= askForKey(message).finally(() => { asking = null; });
	const given = await asking;
	if (!given) throw new Failure(401, { message: "Without a key, the server shows nothing. Reload the page to give one." });
	key = given;
	try { sessionStorage.setItem(KEY, key); } catch { /* then it lasts until the page is left */ }
}

async function answered(path, given) {
	for (;;) {
		const used = key;
		const response = await send(path, given);
		if (response.ok) return response;
		const problem = await failure(response);
		if (response.status !== 401 || given.keepalive) throw problem;
		if (used === key) await newKey(problem.message);
	}
}

export const call = async (path, given = {}) => (await answered(`/api/${path}`, given)).json();
export const get = (path, query, signal) => call(path, { query, signal });
export const post = (path, body, more = {}) => call(path, { body, ...more });
export const download = async (path, query) => (await answered(`/api/${path}`, { query })).blob();

// Work that takes long: `onProgress` receives its job, and the last job is returned.
export async function follow(path, given, onProgress) {
	const response = await answered(`/api/${path}`, { ...given, accept: "text/event-stream" });
	const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = "";
	for (;;) {
		const { value, done } = await reader.read();
		if (done) throw new Failure(0, { message: "The connection ended before the work did. Reload the page to see how far it came." });
		const events = (rest + value.replaceAll("\r\n", "\n")).split("\n\n");
		rest = events.pop();
		for (const event of events) {
			const { name, data } = parsed(event);
			if (!data) continue;
			const job = JSON.parse(data);
			onProgress(job);
			if (name === "failed") throw new Failure(500, job.error || {});
			if (name === "done" || name === "stopped") return job;
		}
	}
}

function parsed(event) {
	const rows = event.split("\n");
	const of = (field) => rows.filter((row) => row.startsWith(`${field}:`)).map((row) => row.slice(field.length + 1).trim());
	return { name: of("event")[0] || "message", data: of("data").join("\n") };
}
