# SPDX-License-Identifier: BSD-2-Clause
"""otlp_judge.py FILE: a file of dcpiexport otlp, which protobuf's own parser of JSON reads, as strictly as collectors
do: a field that its message does not have, a number out of its range or a text in place of a number is an error.
Says "SAMPLES NAME" for each function that has samples of its own."""
import collections
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

# Names and types of opentelemetry-proto 1.10.0, which JSON goes by: common/v1, resource/v1, profiles/v1development.
MESSAGES = {
    "AnyValue": "string_value:string bool_value:bool int_value:int64 double_value:double",
    "KeyValue": "key:string value:AnyValue",
    "InstrumentationScope": "name:string version:string attributes:KeyValue* dropped_attributes_count:uint32",
    "Resource": "attributes:KeyValue* dropped_attributes_count:uint32",
    "ProfilesDictionary": "mapping_table:Mapping* location_table:Location* function_table:Function* link_table:Link* "
                          "string_table:string* attribute_table:KeyValueAndUnit* stack_table:Stack*",
    "ProfilesData": "resource_profiles:ResourceProfiles* dictionary:ProfilesDictionary",
    "ResourceProfiles": "resource:Resource scope_profiles:ScopeProfiles* schema_url:string",
    "ScopeProfiles": "scope:InstrumentationScope profiles:Profile* schema_url:string",
    "Profile": "sample_type:ValueType samples:Sample* time_unix_nano:fixed64 duration_nano:uint64 "
               "period_type:ValueType period:int64 profile_id:bytes dropped_attributes_count:uint32 "
               "original_payload_format:string original_payload:bytes attribute_indices:int32*",
    "Link": "trace_id:bytes span_id:bytes",
    "ValueType": "type_strindex:int32 unit_strindex:int32",
    "Sample": "stack_index:int32 attribute_indices:int32* link_index:int32 values:int64* timestamps_unix_nano:fixed64*",
    "Mapping": "memory_start:uint64 memory_limit:uint64 file_offset:uint64 filename_strindex:int32 "
               "attribute_indices:int32*",
    "Stack": "location_indices:int32*",
    "Location": "mapping_index:int32 address:uint64 lines:Line* attribute_indices:int32*",
    "Line": "function_index:int32 line:int64 column:int64",
    "Function": "name_strindex:int32 system_name_strindex:int32 filename_strindex:int32 start_line:int64",
    "KeyValueAndUnit": "key_strindex:int32 value:AnyValue unit_strindex:int32",
}


def message_class(name):
    file = descriptor_pb2.FileDescriptorProto(name="profiles", package="otlp", syntax="proto3")
    for message, fields in MESSAGES.items():
        to = file.message_type.add(name=message)
        for number, field in enumerate(fields.split(), 1):
            word, kind = field.rstrip("*").split(":")
            f = to.field.add(name=word, number=number, label=3 if field.endswith("*") else 1)
            if kind in MESSAGES:
                f.type, f.type_name = f.TYPE_MESSAGE, ".otlp." + kind
            else:
                f.type = getattr(f, "TYPE_" + kind.upper())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("otlp." + name))


with open(sys.argv[1], encoding="utf-8") as file:
    data = json_format.Parse(file.read(), message_class("ProfilesData")())
tables, found = data.dictionary, collections.Counter()
for profile in (p for r in data.resource_profiles for s in r.scope_profiles for p in s.profiles):
    for sample in profile.samples:
        location = tables.location_table[tables.stack_table[sample.stack_index].location_indices[0]]
        function = tables.function_table[location.lines[0].function_index]
        found[tables.string_table[function.name_strindex]] += sum(sample.values)
for name, n in found.items():
    print(n, name)
