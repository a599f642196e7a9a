-- SPDX-License-Identifier: BSD-2-Clause
-- Input B of sqlite3 for bench/fdo: triggers, views, JSON, recursion, windows, updates.
create table item(id integer primary key, kind text, price real, left integer, note text);
create table log(id integer primary key, item integer, change integer);
create trigger sold after update of left on item begin
	insert into log(item, change) values(new.id, new.left - old.left);
end;
create view cheap as select kind, count(*) as n, avg(price) as mean from item where price < 50 group by kind;
begin;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 12000)
	insert into item select i, 'kind' || (i * 7919 % 37), (i * 104729 % 10007) / 100.0, i % 90, json_object('a', i, 'b', json_array(i % 3, i % 5)) from n;
commit;
begin;
update item set left = left - 1 where id % 7 = 3 and left > 0;
update item set note = json_set(note, '$.c', price) where id % 11 = 5;
replace into item select id, upper(kind), price * 1.1, left, note from item where id % 13 = 2;
delete from item where id % 101 = 50;
commit;
select kind, n, round(mean, 2) from cheap order by n desc, kind limit 5;
select sum(json_extract(note, '$.b[0]')), max(json_extract(note, '$.a')) from item;
select id, kind, sum(price) over (partition by kind order by id rows 5 preceding) as s from item order by s desc, id limit 5;
select count(*) from item a where price > (select avg(price) from item b where b.id between a.id - 8 and a.id + 8);
with recursive walk(id, depth) as (select 1, 0 union all select id * 2 + depth % 2, depth + 1 from walk where id < 6000)
	select count(*), max(depth), sum(price) from walk join item using (id);
select case when left < 10 then 'few' when left < 50 then 'some' else 'many' end as how, count(*), group_concat(distinct substr(kind, -1)) from item group by how order by how;
select count(*) from log where change < 0 and item in (select id from item where note like '%2%');
