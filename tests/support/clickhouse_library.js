// SPDX-License-Identifier: BSD-2-Clause
// clickhouse_library.js FOLDER PORT: the ClickHouse of today as a library (npm's chdb), behind as much of its HTTP interface
// as dcpiship and dcpifetch use: one statement a request, rows as RowBinary. Prints "ready" once it listens.
const fs = require('fs')
const http = require('http')
const { Session } = require('chdb')

const [folder, port] = process.argv.slice(2)
const session = new Session(`${folder}/data`)
let files = 0

// Rows pass through files, as the library hands over texts alone.
function insert(table, columns, rows) {
	const file = `${folder}/rows-${files++}`
	const types = session.query(`SELECT arrayStringConcat(groupArray(concat(name, ' ', type)), ', ') FROM
		(SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = '${table}'
		ORDER BY position(', ${columns},', concat(', ', name, ',')))`, 'TabSeparatedRaw').trim()
	fs.writeFileSync(file, rows)
	session.query(`INSERT INTO ${table} (${columns}) SELECT ${columns} FROM file('${file}', 'RowBinary', '${types}')`)
	fs.unlinkSync(file)
	return ''
}

// FOLDER/questions has all questions that were asked.
function select(sql) {
	fs.appendFileSync(`${folder}/questions`, sql + '\n')
	const file = `${folder}/rows-${files++}`
	session.query(`INSERT INTO FUNCTION file('${file}', 'RowBinary') ${sql}`)
	return fs.existsSync(file) ? fs.readFileSync(file) : ''
}

function answer(statement, body) {
	const rows = /^INSERT INTO (\w+) \((.*)\) FORMAT RowBinary$/.exec(statement)
	if (rows)
		return insert(rows[1], rows[2], body)
	const question = /^(.*) FORMAT RowBinary$/s.exec(body)
	if (question)
		return select(question[1])
	session.query(body.toString())
	return ''
}

// Databases are made as they are named.
function use(database) {
	session.query(`CREATE DATABASE IF NOT EXISTS ${database}`)
	session.query(`USE ${database}`)
}

http.createServer((request, response) => {
	const parts = []
	request.on('data', (part) => parts.push(part))
	request.on('end', () => {
		const body = Buffer.concat(parts)
		try {
			const words = new URL(request.url, 'http://here').searchParams
			use(words.get('database'))
			response.end(answer(words.get('query'), body))
		} catch (error) {
			response.statusCode = 500
			response.end((/Code: \d+.*/s.exec(String(error)) || [String(error)])[0])
		}
	})
}).listen(Number(port), '127.0.0.1', () => console.log('ready'))
