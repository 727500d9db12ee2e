// The REST API: every route with its parameters and forms, from the OpenAPI document; asks the server if you like.

import { useEffect, useState } from "preact/hooks";
import { ask, get } from "../api";
import { Card, Empty } from "../parts";

interface Operation {
  summary?: string;
  description?: string;
  tags?: string[];
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema?: any }[];
  requestBody?: { content: Record<string, { schema: any }> };
  responses: Record<string, { description: string; content?: Record<string, { schema: any }> }>;
}

interface Document {
  info: { title: string; version: string; description?: string };
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, any> };
}

export function Docs() {
  const [found, setFound] = useState<Document | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [only, setOnly] = useState("");
  useEffect(() => {
    get<Document>("openapi.json").then(setFound).catch((error) => setTrouble(error.message));
  }, []);
  if (trouble) return <p class="trouble" role="alert">{trouble}</p>;
  if (!found) return <Empty>Reading the description…</Empty>;
  const rows = Object.entries(found.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })));
  const shown = rows.filter(({ path, operation }) => `${path} ${operation.summary}`.toLowerCase().includes(only.toLowerCase()));
  return (
    <>
      <Card title={`REST API of ${found.info.title}`} note={<><a href="openapi.json">openapi.json</a>, as this server says it.</>}>
        <Words text={found.info.description} />
        <div class="filters"><label>Search <input type="search" value={only} onInput={(event) => setOnly(event.currentTarget.value)} /></label></div>
      </Card>
      {shown.map(({ path, method, operation }) => <Route key={method + path} path={path} method={method} operation={operation} schemas={found.components.schemas} />)}
    </>
  );
}

function Route({ path, method, operation, schemas }: { path: string; method: string; operation: Operation; schemas: Record<string, any> }) {
  const [values, setValues] = useState<Record<string, string>>({});
  const [body, setBody] = useState("");
  const [answer, setAnswer] = useState<string | null>(null);
  const parameters = (operation.parameters ?? []).filter((one) => one.in === "path" || one.in === "query");
  const streams = Object.values(operation.responses).some((one) => one.content?.["text/event-stream"]);
  const url = () => {
    const query = new URLSearchParams();
    let filled = path;
    for (const one of parameters) {
      const value = values[one.name] ?? "";
      if (one.in === "path") filled = filled.replace(`{${one.name}}`, encodeURIComponent(value));
      else if (value !== "") query.append(one.name, value);
    }
    return filled + (query.size ? `?${query}` : "");
  };
  const send = async () => {
    setAnswer("…");
    try {
      const options: RequestInit = { method: method.toUpperCase() };
      if (body) Object.assign(options, { body, headers: { "Content-Type": "application/json" } });
      const got = await ask(url().slice(1), options);
      const text = await got.text();
      setAnswer(`${got.status}\n${pretty(text).slice(0, 20000)}`);
    } catch (error) {
      setAnswer(`${(error as { status?: number }).status ?? ""} ${(error as Error).message}`);
    }
  };
  const command = `curl -H "Authorization: Bearer $FAIRWAY_TOKEN"${method === "get" ? "" : ` -X ${method.toUpperCase()}`}${body ? ` -H 'Content-Type: application/json' -d '${body.replaceAll("'", "'\\''")}'` : ""} '${location.origin}${url()}'`;
  return (
    <details class="card route">
      <summary><span class={`method ${method}`}>{method.toUpperCase()}</span> <code>{path}</code> <span class="faint">{operation.summary}</span></summary>
      <Words text={operation.description} />
      {parameters.length > 0 && (
        <div class="parameters">
          {parameters.map((one) => (
            <label key={one.name}><span><code>{one.name}</code>{one.required ? " (needed)" : ""} <span class="faint">{one.description}</span></span>
              <input value={values[one.name] ?? ""} placeholder={typeName(one.schema)} onInput={(event) => setValues({ ...values, [one.name]: event.currentTarget.value })} />
            </label>
          ))}
        </div>
      )}
      {operation.requestBody && (
        <label class="wide">Body (JSON) <textarea rows={5} value={body} onInput={(event) => setBody(event.currentTarget.value)} />
          <Schema schema={Object.values(operation.requestBody.content)[0]?.schema} schemas={schemas} name="what it may hold" />
        </label>
      )}
      {!streams && <p><button type="button" onClick={() => void send()}>{`Send ${method.toUpperCase()}`}</button></p>}
      <pre class="code" tabIndex={0}>{command}</pre>
      {answer !== null && <pre class="code" tabIndex={0} aria-label="Answer">{answer}</pre>}
      {Object.entries(operation.responses).filter(([status]) => status < "400").map(([status, one]) => (
        <Schema key={status} name={`${status}: ${one.description}`} schema={one.content?.["application/json"]?.schema} schemas={schemas} />
      ))}
      <p class="faint">{`Refuses with ${Object.keys(operation.responses).filter((status) => status >= "400").join(", ")}.`}</p>
    </details>
  );
}

/** Paragraphs, with what stands between backticks as code. */
function Words({ text = "" }: { text?: string }) {
  return <>{text.split("\n\n").map((paragraph) => <p key={paragraph}>{paragraph.split("`").map((part, k) => (k % 2 ? <code key={k}>{part}</code> : part))}</p>)}</>;
}

function Schema({ schema, schemas, name }: { schema: any; schemas: Record<string, any>; name: string }) {
  const full = resolved(schema, schemas);
  if (!full?.properties) return <p>{name}</p>;
  return (
    <details>
      <summary>{name}</summary>
      <table class="fields"><tbody>
        {Object.entries<any>(full.properties).map(([field, of]) => (
          <tr key={field}><td><code>{field}</code></td><td>{typeName(of)}</td><td class="faint">{of.description ?? ""}</td></tr>
        ))}
      </tbody></table>
    </details>
  );
}

const resolved = (schema: any, schemas: Record<string, any>): any => (schema?.$ref ? schemas[schema.$ref.split("/").pop()] : schema);

function typeName(schema: any): string {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(typeName).join(" or ");
  if (schema.type === "array") return `list of ${typeName(schema.items)}`;
  if (schema.enum) return schema.enum.join(", ");
  return Array.isArray(schema.type) ? schema.type.join(" or ") : (schema.type ?? "");
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
