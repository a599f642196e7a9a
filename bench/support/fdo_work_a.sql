-- SPDX-License-Identifier: BSD-2-Clause
-- Input A of sqlite3 for bench/fdo: inserts, index scans, joins, LIKE, updates, window functions.
create table person(id integer primary key, name text not null, town text, born integer);
create table visit(id integer primary key, person integer references person(id), day integer, cost real, note text);
begin;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 4000)
	insert into person select i, 'name' || (i * 7919 % 1009), 'town' || (i * 31 % 61), 1930 + i * 17 % 80 from n;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 16000)
	insert into visit select i, 1 + i * 6151 % 4000, i * 389 % 365, (i * 104729 % 9973) / 10.0, 'note ' || hex(i * 2654435761 % 65536) from n;
commit;
create index visit_person on visit(person, day);
create index person_town on person(town);
insert into person values (4001, 'Ada', 'town7', 1815), (4002, 'Grace', 'town9', 1906), (4003, 'Edsger', null, 1930);
insert into visit(person, day, cost, note) values (4001, 3, 12.5, 'first'), (4002, 4, 0.5, null), (4003, 5, 99.0, 'last');
select count(*), sum(cost) from visit where person between 100 and 900 and day < 200;
select count(*) from person where town = 'town7' or town in ('town9', 'town11', 'town13');
select p.town, count(*), round(avg(v.cost), 2) from person p join visit v on v.person = p.id where p.born > 1960 group by p.town having count(*) > 90 order by 3 desc, 1 limit 7;
select count(*) from person a join person b on a.name = b.name and a.id < b.id;
select p.name, v.cost from person p left join visit v on v.person = p.id and v.cost > 990 where p.id % 50 = 0 order by v.cost desc, p.name limit 9;
select count(*), max(length(note)) from visit where note like '%AB%' or note like 'note 1_3%';
select count(distinct upper(substr(name, 3, 4))) from person where name glob 'name[1-4]*';
begin;
update visit set cost = cost * 1.05 where day between 50 and 120;
update person set town = replace(town, 'town', 'city') where id % 5 = 0;
update visit set note = note || '!' where person in (select id from person where town like 'city1%');
delete from visit where day = 17 and cost < 300;
commit;
select day, total from (select day, sum(cost) over (order by day range between 7 preceding and current row) as total from visit where person < 800) group by day order by total desc limit 5;
select id, town, rank() over (partition by town order by born, id) as r, lag(name, 2) over (partition by town order by born, id) from person where born < 1950 order by r desc, id limit 6;
select town, ntile(4) over (order by count(*)) as quarter from person group by town order by quarter, town limit 8;
select count(*) from (select name from person where born < 1950 intersect select name from person where born > 1980);
select name, born from person where born = (select max(born) from person) union all select name, born from person where id > 4000 order by 2, 1 limit 6;
